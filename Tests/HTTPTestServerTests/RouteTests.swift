import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RouteTests {
  private let server: HTTPTestServer
  private let client: RawClient

  init() throws {
    server = try HTTPTestServer()
    client = try RawClient(server)
  }

  private func send(_ method: String, _ target: String, _ type: String, _ body: String) throws
    -> RawClient.Response
  {
    try client.ask(method, target, ["Content-Type: \(type)", "Content-Length: \(body.utf8.count)"])
    try client.write(body)
    return try client.readResponse()
  }

  @Test("/get returns the request") func get() throws {
    let response = try client.get("/get?a=1&b=%26&a=3", ["x-my-HEADER: v", "X-My-Header: w"])
    #expect(response.field("Content-Type") == "application/json")
    #expect(
      response.text == """
        {"args": {"a": ["1", "3"], "b": "&"}, "headers": {"Host": "127.0.0.1", "X-My-Header": "v,w"}, \
        "origin": "127.0.0.1", "url": "http://127.0.0.1/get?a=1&b=%26&a=3"}
        """)
  }

  @Test("Many fields are returned in the order of their first values") func manyFields() throws {
    let names = (0..<1000).map { "X-\($0)" }
    let fields = names.map { "\($0): a" } + names.reversed().map { "\($0.lowercased()): b" }
    let members = names.map { "\"\($0)\": \"a,b\"" }.joined(separator: ", ")
    let expected = #"{"headers": {"Host": "127.0.0.1", "# + members + "}}"
    #expect(try client.get("/headers", fields).text == expected)
  }

  @Test("Bodies are returned by their type", arguments: ["POST", "PUT", "PATCH", "DELETE"])
  func bodies(_ method: String) throws {
    let target = "/\(method.lowercased())"
    let form = try send(method, target, "application/x-www-form-urlencoded", "a=1&b=+x&a=2")
    #expect(
      form.text.contains(#""data": "", "files": {}, "form": {"a": ["1", "2"], "b": " x"}, "json": null"#))
    let json = try send(method, target, "application/json", #"{"a": [1]}"#)
    #expect(json.text.contains(#""data": "{\"a\": [1]}", "files": {}, "form": {}, "json": {"a": [1]}"#))
    let wrong = try send(method, target, "application/json", #"{"a": [1}"#)
    #expect(wrong.text.contains(#""json": null"#))
  }

  @Test("JSON of any depth is returned, and nothing else is taken for it") func deepJSON() throws {
    for depth in [500, 20_000] {
      let deep = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
      let response = try send("POST", "/anything", "application/json", deep)
      #expect(response.text.contains(#""json": \#(deep)}"#) || response.text.contains(#""json": \#(deep),"#))
      #expect(try send("POST", "/post", "application/json", deep + "]").text.contains(#""json": null"#))
    }
    for text in [#"{"a":{"b":[1,-0.5e+3,"\u00e9\n",true,false,null]},"c":[]}"#, " 1 ", #""x""#, "{}"] {
      #expect(
        try send("POST", "/post", "application/json", text).text.contains("\"json\": \(text)}"), "\(text)")
    }
    for text in [
      "", "[", "01", "1.", ".5", "+1", "1e", "[1,]", "{,}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, "{1:2}",
      "tru",
      #""\x""#, #""\u12""#, "\"a\nb\"", "[1 2]", "[}", "1 2", "\"",
    ] {
      let response = try send("POST", "/post", "application/json", text)
      #expect(response.text.contains(#""json": null"#), "\(text)")
    }
  }

  @Test("Files are returned") func files() throws {
    let body =
      "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\ntext\r\n"
      + "--B\r\nContent-Disposition: form-data; name=\"v\"\r\n\r\n1\r\n--B--\r\n"
    let response = try send("POST", "/post", "multipart/form-data; boundary=B", body)
    #expect(response.text.contains(#""data": "", "files": {"f": "text"}, "form": {"v": "1"}"#))
  }

  @Test("A binary body is returned as a data URL") func binaryBody() throws {
    try client.ask("POST", "/anything/x", ["Content-Length: 2"])
    try client.write([0xFF, 0xFE])
    let text = try client.readResponse().text
    #expect(text.contains(#""data": "data:application/octet-stream;base64,//4=""#))
    #expect(text.contains(#""method": "POST""#))
  }

  @Test("Parts of the request are returned") func partsOfRequest() throws {
    #expect(try client.get("/ip").text == #"{"origin": "127.0.0.1"}"#)
    #expect(try client.get("/user-agent", ["User-Agent: x"]).text == #"{"user-agent": "x"}"#)
    #expect(try client.get("/headers").text == #"{"headers": {"Host": "127.0.0.1"}}"#)
    #expect(
      try client.get("/cookies", ["Cookie: a=1; b=x=y"]).text == #"{"cookies": {"a": "1", "b": "x=y"}}"#)
  }

  @Test("Routes check the method") func methods() throws {
    let wrong = try client.get("/post")
    #expect(wrong.status == 405)
    #expect(wrong.field("Allow") == "POST, OPTIONS")
    #expect(wrong.text.contains("method not allowed"))
    try client.ask("OPTIONS", "/get")
    #expect(try client.readResponse().field("Allow") == "GET, HEAD, OPTIONS")
    try client.ask("HEAD", "/bytes/100")
    let head = try client.readResponse(isHead: true)
    #expect(head.status == 200)
    #expect(head.field("Content-Length") == "100")
    try client.ask("PURGE", "/anything")
    #expect(try client.readResponse().text.contains(#""method": "PURGE""#))
    let missing = try client.get("/nothing/here")
    #expect(missing.status == 404)
    #expect(missing.text == #"{"error": "not found", "path": "/nothing/here"}"#)
  }

  @Test("Statuses have their fields") func statuses() throws {
    #expect(try client.get("/status/418").statusLine == "HTTP/1.1 418 I'm a teapot")
    #expect(try client.get("/status/302").field("Location") == "/redirect/1")
    #expect(try client.get("/status/401").field("WWW-Authenticate")?.hasPrefix("Basic ") == true)
    #expect(try client.get("/status/204").status == 204)
    #expect(try client.get("/status/abc").status == 400)
    #expect(try client.get("/status/100").status == 400)
  }

  @Test("Bytes are equal in every form") func bytes() throws {
    #expect(try client.get("/bytes/100000").body == Reply.patternBytes(100_000))
    let stream = try client.get("/stream-bytes/100000")
    #expect(stream.field("Transfer-Encoding") == "chunked")
    #expect(stream.body == Reply.patternBytes(100_000))
    #expect(try client.get("/bytes/-1").status == 400)
    #expect(try client.get("/bytes/0").body.isEmpty)
  }

  @Test("Lines are documents") func lines() throws {
    let lines = try client.get("/stream/3").text.split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines[2].hasSuffix(#""id": 2}"#))
    // Each line repeats the query.
    let refusal = try client.get("/stream/100000?" + String(repeating: "a", count: 100_000))
    #expect(refusal.status == 400)
    #expect(refusal.text.contains("too long"))
  }

  @Test("Delays are respected") func delays() throws {
    let clock = ContinuousClock()
    let start = clock.now
    #expect(try client.get("/delay/0.05").status == 200)
    #expect(try client.get("/drip?numbytes=7&duration=0.05&code=201").text == "*******")
    #expect(clock.now - start >= .milliseconds(100))
    #expect(try client.get("/delay/x").status == 400)
    #expect(try client.get("/drip?numbytes=0").status == 400)
  }

  @Test("Redirects count down") func redirects() throws {
    #expect(try client.get("/redirect/3").field("Location") == "/redirect/2")
    #expect(try client.get("/redirect/1").field("Location") == "/get")
    #expect(try client.get("/relative-redirect/2").field("Location") == "/relative-redirect/1")
    #expect(
      try client.get("/absolute-redirect/2").field("Location") == "http://127.0.0.1/absolute-redirect/1")
    #expect(
      try client.get("/redirect/2?absolute=true").field("Location")
        == "http://127.0.0.1/redirect/1?absolute=true")
    let custom = try client.get("/redirect-to?url=%2Fa%3Fb&status_code=308")
    #expect(custom.status == 308)
    #expect(custom.field("Location") == "/a?b")
    #expect(try client.get("/redirect-to").status == 400)
    #expect(try client.get("/redirect/0").status == 400)
  }

  @Test("Credentials are required") func credentials() throws {
    let basic = "Authorization: Basic dTpw"
    let refused = try client.get("/basic-auth/u/p")
    #expect(refused.status == 401)
    #expect(refused.field("WWW-Authenticate") == #"Basic realm="Fake Realm""#)
    #expect(try client.get("/basic-auth/u/p", [basic]).text == #"{"authenticated": true, "user": "u"}"#)
    #expect(try client.get("/basic-auth/u/q", [basic]).status == 401)
    #expect(try client.get("/basic-auth/u/p", ["Authorization: Basic ?"]).status == 401)
    #expect(try client.get("/hidden-basic-auth/u/p").status == 404)
    #expect(try client.get("/hidden-basic-auth/u/p", [basic]).status == 200)
    #expect(try client.get("/bearer").field("WWW-Authenticate") == "Bearer")
    #expect(
      try client.get("/bearer", ["Authorization: Bearer t"]).text
        == #"{"authenticated": true, "token": "t"}"#)
  }

  @Test("Digest credentials are computed") func digest() throws {
    let challenge = try client.get("/digest-auth/auth/Mufasa/Circle%20of%20Life/SHA-256")
    #expect(challenge.status == 401)
    #expect(challenge.field("WWW-Authenticate")?.contains("algorithm=SHA-256") == true)
    #expect(try client.get("/digest-auth/auth/u/p/MD4").status == 400)
    // The response was computed by the openssl tool, independently of this code.
    let credentials =
      #"Authorization: Digest username="u", realm="r", nonce="n", uri="/digest-auth/auth/u/p", "#
      + #"qop=auth, nc=00000001, cnonce="c", response="DIGEST""#
    let right = credentials.replacing("DIGEST", with: "37a8ad6ce9c2629cb30cd4c58f5c60b1")
    #expect(try client.get("/digest-auth/auth/u/p", [right]).status == 200)
    #expect(try client.get("/digest-auth/auth/u/p", [credentials]).status == 401)
    #expect(try client.get("/digest-auth/auth/x/p", [right]).status == 401)
  }

  @Test(
    "The bytes of a body are hashed for auth-int (RFC 7616 §3.4.3)",
    arguments: [[0xFF, 0x00], [0xFE, 0x00]])
  func signedBytes(_ body: [UInt8]) throws {
    // The response was computed by the openssl tool, independently of this code.
    let credentials =
      #"Authorization: Digest username="u", realm="r", nonce="n", uri="/digest-auth/auth-int/u/p", "#
      + #"qop=auth-int, nc=00000001, cnonce="c", response="521f702a3d682769801e1ad326d1c396""#
    try client.ask("POST", "/digest-auth/auth-int/u/p", [credentials, "Content-Length: 2"])
    try client.write(body)
    #expect(try client.readResponse().status == (body[0] == 0xFF ? 200 : 401))
  }

  @Test("Cookies are set and deleted") func cookies() throws {
    let set = try client.get("/cookies/set?a=1&b=2")
    #expect(set.status == 302)
    #expect(set.field("Location") == "/cookies")
    #expect(set.all("Set-Cookie") == ["a=1; Path=/", "b=2; Path=/"])
    #expect(try client.get("/cookies/set/a/1").all("Set-Cookie") == ["a=1; Path=/"])
    #expect(try client.get("/cookies/delete?a").all("Set-Cookie")[0].contains("Max-Age=0"))
  }

  @Test("Conditions are evaluated") func conditions() throws {
    let fresh = try client.get("/etag/x")
    #expect(fresh.field("ETag") == "\"x\"")
    #expect(try client.get("/etag/x", ["If-None-Match: \"y\", W/\"x\""]).status == 304)
    #expect(try client.get("/etag/x", ["If-None-Match: \"y\""]).status == 200)
    #expect(try client.get("/etag/x", ["If-Match: \"y\""]).status == 412)
    #expect(try client.get("/etag/x", ["If-Match: \"y\"", "If-Match: \"x\""]).status == 200)
    #expect(try client.get("/etag/x", ["If-Match: W/\"x\""]).status == 412)
    #expect(try client.get("/etag/x", ["If-Match: *"]).status == 200)
    #expect(try client.get("/etag/x", ["If-None-Match: *"]).status == 304)
    // If-Match precedes If-None-Match (RFC 9110 §13.2.2).
    #expect(try client.get("/etag/x", ["If-None-Match: \"x\"", "If-Match: \"y\""]).status == 412)
    #expect(try client.get("/etag/x", ["If-None-Match: \"x\"", "If-Match: \"x\""]).status == 304)
    // A comma in quotes does not separate tags, and a backslash escapes nothing.
    #expect(try client.get("/etag/b,c", ["If-Match: \"a\\\", \"b,c\""]).status == 200)
    #expect(try client.get("/etag/x", ["If-Match: \"a,\"x\",b\""]).status == 412)
    #expect(try client.get("/cache").field("Last-Modified") != nil)
    #expect(try client.get("/cache", ["If-Modified-Since: x"]).status == 304)
    #expect(try client.get("/cache/60").field("Cache-Control") == "public, max-age=60")
  }

  @Test("Ranges are sent") func ranges() throws {
    let part = try client.get("/range/100", ["Range: bytes=24-27", "If-Range: \"range100\""])
    #expect(part.status == 206)
    #expect(part.text == "yzab")
    #expect(part.field("Content-Range") == "bytes 24-27/100")
    #expect(part.field("Accept-Ranges") == "bytes")
    #expect(try client.get("/range/100", ["Range: bytes=1-2", "If-Range: \"old\""]).body.count == 100)
    try client.ask("HEAD", "/range/100", ["Range: bytes=0-9"])
    let head = try client.readResponse(isHead: true)
    #expect(head.status == 200)
    #expect(head.field("Content-Length") == "100")
    let outside = try client.get("/range/100", ["Range: bytes=100-"])
    #expect(outside.status == 416)
    #expect(outside.field("Content-Range") == "bytes */100")
  }

  @Test("Documents have their types") func documents() throws {
    for (path, type) in [
      ("/json", "application/json"), ("/html", "text/html; charset=utf-8"), ("/xml", "application/xml"),
      ("/encoding/utf8", "text/html; charset=utf-8"), ("/image/png", "image/png"),
      ("/uuid", "application/json"),
    ] {
      let response = try client.get(path)
      #expect(response.field("Content-Type") == type)
      #expect(response.body.count > 40)
    }
    #expect(try client.get("/image/png").body.prefix(4) == [0x89, 0x50, 0x4E, 0x47])
    #expect(try client.get("/uuid").text != client.get("/uuid").text)
    #expect(try client.get("/gzip").field("Content-Encoding") == "gzip")
    #expect(try client.get("/deflate").field("Content-Encoding") == "deflate")
    #expect(try client.get("/response-headers?X-A=1&X-A=2").all("X-A") == ["1", "2"])
  }

  @Test("Uploads are echoed or counted") func uploads() throws {
    let echo = try send("POST", "/echo", "text/x-own", "hello")
    #expect(echo.text == "hello")
    #expect(echo.field("Content-Type") == "text/x-own")
    #expect(try send("PUT", "/upload-sink", "a/b", "hello").text == #"{"received": 5}"#)
    #expect(server.recordedRequests.last?.bodyLength == 5)
    #expect(server.recordedRequests.last?.body.isEmpty == true)
  }
}
