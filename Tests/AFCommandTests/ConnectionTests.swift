import Alamofire
import Foundation
import HTTPTestServer
import Testing

@testable import AFCommand

/// Options of the connection, and errors in the words of the command.
@Suite(.timeLimit(.minutes(5))) struct ConnectionTests {
  @Test("-k accepts an unknown authority")
  func insecure() async throws {
    let secure = try HTTPTestServer(.tls(.localhost))
    #expect(await Terminal.pipe.run("-k", secure.url("/get")).status == .success)
    #expect(await Terminal.pipe.run(secure.url("/get")).status == .failure)
  }

  @Test("--resolve sends the request for a host to an address")
  func resolve() async throws {
    let server = try HTTPTestServer()
    let run = await Terminal.pipe.run(
      "--resolve", "some.example:\(server.port):127.0.0.1", "http://some.example:\(server.port)/get")
    #expect(run.status == .success)
    #expect(try await server.takeRequest().header("Host") == "some.example:\(server.port)")
  }

  @Test("--proxy sends the request to a proxy, none to the server")
  func proxy() async throws {
    let (server, proxy) = (try HTTPTestServer(), try HTTPTestServer())
    proxy.enqueue(.text("from the proxy"))
    let run = await Terminal.pipe.run("--proxy", "127.0.0.1:\(proxy.port)", server.url("/get"))
    #expect(run.output == "from the proxy")
    #expect(await Terminal.pipe.run("--proxy", "none", server.url("/get")).status == .success)
    #expect(server.requestCount == 1)
    #expect(await Terminal.pipe.run("--proxy", "ftp://x", server.url("/get")).status == .usage)
  }

  @Test("The user in the URL of --proxy belongs to the proxy, whatever its protocol")
  func proxyUser() throws {
    for (scheme, kind, port) in [
      ("http", ProxyServer.Kind.http, 1080), ("HTTPS", .https, 443), ("socks4", .socks4, 1080),
      ("socks4a", .socks4a, 1080), ("socks5", .socks5, 1080), ("socks5h", .socks5h, 1080),
    ] {
      for (authority, port) in [("ann:s%20t@p.test", port), ("ann:s%20t@p.test:9", 9)] {
        let server = ProxyServer(kind, host: "p.test", port: port, username: "ann", password: "s t")
        #expect(try ProxyArgument.proxy("\(scheme)://\(authority)") == .server(server), "\(scheme)")
      }
    }
  }

  @Test("--proxy-anyauth answers a proxy that asks for Digest, instead of sending Basic")
  func proxyLogin() async throws {
    let proxy = try HTTPTestServer()
    let challenge = Reply.status(407).with(
      header: "Proxy-Authenticate", value: #"Digest realm="proxy", nonce="n", qop="auth", algorithm=SHA-256"#)
    let arguments = ["--proxy", "http://ann:secret@127.0.0.1:\(proxy.port)", "http://shop.example/x"]
    proxy.enqueue(challenge)
    let basic = await Terminal.pipe.run(arguments)
    #expect(basic.error == "af: The server answered 407 Proxy Authentication Required.\n")
    proxy.enqueue(challenge)
    proxy.enqueue(.text("through the proxy"))
    let run = await Terminal.pipe.run(["--proxy-anyauth"] + arguments)
    #expect(run.output == "through the proxy", "\(run.error)")
    let fields = proxy.recordedRequests.map { $0.header("Proxy-Authorization") ?? "none" }
    #expect(fields.map { $0.prefix(6) } == ["Basic ", "none", "Digest"])
    #expect(fields.last?.contains(#"username="ann""#) == true && fields.last?.contains("secret") == false)
  }

  @Test("--proxy-anyauth is for a proxy of --proxy, and part of the curl command")
  func proxyLoginArguments() async throws {
    let missing = await Terminal.pipe.run("--proxy-anyauth", "http://shop.example/x")
    #expect(missing.status == .usage)
    #expect(missing.error.contains("--proxy-anyauth needs a proxy: add --proxy"), "\(missing.error)")
    let curl = await Terminal.pipe.run(
      "--proxy-anyauth", "--proxy", "http://127.0.0.1:1", "--curl", "http://shop.example/x")
    #expect(curl.output.contains("--proxy-anyauth"), "\(curl.output)")
  }

  @Test("--proxy with a scheme prefix is for URLs of that scheme, as in HTTPie")
  func proxyOfScheme() async throws {
    let (server, proxy) = (try HTTPTestServer(), try HTTPTestServer())
    let url = "http://127.0.0.1:\(proxy.port)"
    for option in ["http:\(url)", "all:\(url)"] {
      proxy.enqueue(.text("from the proxy"))
      #expect(await Terminal.pipe.run("--proxy", option, server.url("/get")).output == "from the proxy")
    }
    proxy.enqueue(.text("from the proxy"))
    let two = await Terminal.pipe.run(
      "--proxy=https:http://127.0.0.1:1", "--proxy=http:\(url)", server.url("/get"))
    #expect(two.output == "from the proxy")
    #expect(server.requestCount == 0)
    let other = await Terminal.pipe.run("--proxy", "https:\(url)", server.url("/get"))
    #expect(other.status == .success)
    #expect(server.requestCount == 1 && proxy.requestCount == 3)
  }

  @Test("A redirect to another scheme uses the proxy of that scheme")
  func proxyOfRedirect() async throws {
    let (server, proxy) = (try HTTPTestServer(), try HTTPTestServer())
    server.enqueue(.redirect(to: "https://secure.invalid/"))
    let run = await Terminal.pipe.run(
      "--proxy", "https:http://127.0.0.1:\(proxy.port)", server.url("/"))
    #expect(run.status != .success)
    #expect(server.requestCount == 1)
    #expect(proxy.recordedRequests.map(\.method) == ["CONNECT"])
  }

  @Test(
    "--max-time ends a request that still receives bytes, --connect-timeout one that does not connect")
  func timeLimits() async throws {
    let gate = Gate()
    let server = try HTTPTestServer()
    server.enqueue(Reply(body: .parts(["begun", .gate(gate)])))
    let total = await Terminal.pipe.run("--max-time", "0.3", server.url("/"))
    gate.open()
    #expect(total.status == .failure)
    #expect(total.error.hasSuffix(" within 0.3 seconds. With --max-time SECONDS it may take longer.\n"))
    let secure = try HTTPTestServer(.tls(.localhost))
    secure.enqueue(connections: .stall)
    let connecting = await Terminal.pipe.run("-k", "--connect-timeout", "0.3", secure.url("/get"))
    #expect(connecting.status == .failure)
    #expect(connecting.error.hasSuffix(" With --connect-timeout and --timeout SECONDS it may take longer.\n"))
    let proxy = try HTTPTestServer()
    proxy.enqueue(connections: .stall, .stall)
    for option in ["--connect-timeout", "--timeout"] {
      let slow = await Terminal.pipe.run(
        "--proxy", "127.0.0.1:\(proxy.port)", option, "0.3", "https://shop.example/")
      #expect(slow.status == .failure)
      #expect(
        slow.error.contains("shop.example through the proxy http://127.0.0.1:\(proxy.port) "), "\(slow.error)"
      )
    }
    let ample = await Terminal.pipe.run("--max-time=60", "--connect-timeout=60", server.url("/get"))
    #expect(ample.status == .success)
  }

  @Test(
    "--retry sends an idempotent request again after a temporary failure, and shows the last response alone")
  func retry() async throws {
    let server = try HTTPTestServer()
    let busy = Reply(status: 503, body: .bytes(Array("busy".utf8)))
    server.enqueue(busy, .text("done"))
    let run = await Terminal.pipe.run("--retry", "1", "PUT", server.url("/"), "--raw", "x")
    #expect(run.status == .success && run.output == "done")
    #expect(run.error == "af: The server answered 503 Service Unavailable. Trying again in 0.5 s (1 of 1).\n")
    #expect(server.recordedRequests.map(\.bodyText) == ["x", "x"])
    server.enqueue(busy, busy)
    let last = await Terminal.pipe.run("--retry", "1", "-q", server.url("/x"))
    #expect(last.status == .serverError && last.error == "af: The server answered 503 Service Unavailable.\n")
    server.enqueue(busy, busy)
    let shown = await Terminal.pipe.run("--retry", "1", server.url("/"))
    #expect(shown.status == .serverError && shown.output == "busy")
    server.enqueue(busy)
    // The command of curl would repeat a POST.
    let curl = await Terminal.pipe.run("--retry", "1", "--curl", "POST", server.url("/"), "a=b")
    #expect(curl.status == .success && !curl.output.contains("--retry"))
    #expect(await Terminal.pipe.run("--retry", "1", "--curl", server.url("/")).output.contains("--retry 1"))
    let post = await Terminal.pipe.run("--retry", "1", "POST", server.url("/"))
    #expect(post.status == .serverError && post.output == "busy")
    #expect(server.requestCount == 7)
  }

  @Test(
    "A response is the last one if it asks for a long delay or has a long body",
    arguments: [("301", 4), ("301", 0), ("31", 4), ("0", 2_000_000)])
  func lastResponse(retryAfter: String, count: Int) async throws {
    let server = try HTTPTestServer()
    server.enqueue(
      Reply(status: 503, body: .bytes([UInt8](repeating: 97, count: count)))
        .with(header: "Retry-After", value: retryAfter))
    let limit = retryAfter == "31" ? ["--max-time", "30"] : []
    let run = await Terminal.pipe.run(limit + ["-p", "hb", "--retry", "3", server.url("/")])
    #expect(run.status == .serverError && run.error == "af: The server answered 503 Service Unavailable.\n")
    #expect(run.output.hasPrefix("HTTP/1.1 503 Service Unavailable\n"))
    let body = run.output.components(separatedBy: "\n\n").last ?? ""
    #expect(body == String(repeating: "a", count: count) && server.requestCount == 1)
  }

  @Test("A retry after a failure of the connection names its reason")
  func retryOfConnection() async throws {
    let port = try HTTPTestServer.refusedPort()
    let run = await Terminal.pipe.run("--retry", "1", "http://127.0.0.1:\(port)/")
    #expect(run.status == .failure)
    #expect(run.error.contains("on port \(port). Trying again in 0.5 s (1 of 1).\naf: 127.0.0.1 does not"))
  }

  @Test("--retry requests no body again that has begun")
  func retryOfBegunBody() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.closeAfterBody(bytes: 5))
    let run = await Terminal.pipe.run("--retry", "2", server.url("/"))
    #expect(run.status == .failure && run.bytes.count == 5)
    #expect(server.requestCount == 1)
  }

  @Test("--retry requests nothing again of which the head was shown")
  func retryOfShownHead() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.closeAfterBody(bytes: 0))
    let run = await Terminal.pipe.run("-h", "--retry", "2", server.url("/"))
    #expect(run.status == .failure && run.output.hasPrefix("HTTP/1.1 200"), "\(run.output)\(run.error)")
    #expect(server.requestCount == 1)
  }

  @Test("--limit-rate limits both directions")
  func bandwidth() throws {
    var invocation = Invocation()
    invocation.bandwidth = 1000
    #expect(try Session.options(invocation).sessionBandwidth == .init(download: 1000, upload: 1000))
  }

  @Test("--unix-socket that is not there is named")
  func unixSocket() async {
    let run = await Terminal.pipe.run("--unix-socket", "/none/socket", "http://localhost/")
    #expect(run.status == .usage)
    #expect(run.error.contains("/none/socket"))
  }

  @Test("A certificate that cannot be used is a usage error with its path")
  func certificate() async {
    let run = await Terminal.pipe.run("--cert", "/none.pem", "https://localhost/")
    #expect(run.status == .usage)
    #expect(run.error.contains("'/none.pem'"))
  }

  @Test("Errors name options of the command, not members of the library")
  func words() async throws {
    let server = try HTTPTestServer()
    let errors = [
      await Terminal.pipe.run("--max-redirects", "1", server.url("/redirect/2")).error,
      await Terminal.pipe.run("--proxy", "http://proxy.invalid:1", server.url("/get")).error,
    ]
    for error in errors {
      #expect(error.contains("--"))
      #expect(!error.contains("TransportOptions") && !error.contains("redirectLimit"))
    }
  }

  @Test("An error advises nothing that no option can do", arguments: [[], ["-I", "ws"]])
  func advice(words: [String]) async throws {
    let server = try HTTPTestServer()
    server.enqueue(Reply.text("").with(header: "X-Long", value: String(repeating: "a", count: 300_000)))
    let run = await Terminal.pipe.run(words + [server.url("/")])
    #expect(run.status == .failure && run.error.contains("The header of the response"), "\(run.error)")
    #expect(!run.error.contains("Raise") && !run.error.contains("headerSizeLimit"), "\(run.error)")
    for (name, kind) in [("decodingRatioLimit", "responses"), ("bodySizeLimit", "files")] {
      let text = FailureMessage.inOptions("Too much. Raise \(name) if such \(kind) are expected.")
      #expect(text == "Too much.")
    }
  }
}
