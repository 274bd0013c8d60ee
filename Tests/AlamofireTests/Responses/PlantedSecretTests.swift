import Alamofire
import Foundation
import Testing

/// Secrets in every part that a message has. Each contains the word "planted", which is never shown.
enum PlantedSecrets {
  static let fields: [(name: String, value: String)] = [
    ("Authorization", "planted"), ("Authorization", "Basic planted"), ("Authorization", "planted planted"),
    ("Authorization", "X-Planted-Scheme planted"), ("Authorization", "Bearer planted planted"),
    ("Authorization", "planted=planted, x=y"), ("Authorization", "Bearer\tplanted"),
    ("Authorization", " planted"),
    ("Proxy-Authorization", "Digest username=\"planted\", response=\"planted\""),
    ("X-Forwarded-Authorization", "planted key"),
    ("Cookie", "planted"), ("Cookie", "=planted"), ("Cookie", "a=planted; planted; b=planted=planted"),
    ("Cookie", " = planted"), ("Cookie", "a=\"planted; planted\""),
    ("Set-Cookie", "planted"), ("Set-Cookie", "=planted; Path=/"), ("Set-Cookie", "planted; HttpOnly"),
    ("Set-Cookie", "a=planted; Path=/; planted"), ("Set-Cookie", "a=planted; Secret=planted"),
    ("Set-Cookie", "a=1; Path=/, b=planted; Secure"), ("Set-Cookie", "a=1; Path=/, planted; Secure"),
    ("Set-Cookie", "a=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT, b=planted"),
    ("Set-Cookie", "a=1; Expires=Wed, 21 Oct 2015 07:28:00 GMT, planted"),
    ("Set-Cookie", "a=1; Path=/?planted"), ("Set-Cookie2", "a=planted"),
    ("Location", "/cb#access_token=planted&state=1"), ("Location", "cb?code=planted"),
    ("Location", "?key=planted"),
    ("Location", "#id_token=planted"), ("Location", "//ann:planted@h/"), ("Location", "https://planted@h/a"),
    ("Location", "https://h/a?token=planted planted"), ("Location", "/a;jsessionid=planted?b=c"),
    ("Location", "/login?next=https%3A%2F%2Fann%3Aplanted%40h%2F"),
    ("Content-Location", "/a?signature=planted"), ("Referer", "https://h/a?sig=planted"),
    ("Refresh", "5; url=/cb#access_token=planted"),
    ("Refresh", "0;URL='https://ann:planted@h/?token=planted'"),
    ("Refresh", "1;url=https://planted@h"),
    ("Link", "</a?token=planted>; rel=\"next\", <https://ann:planted@h/>; rel=x"),
    ("Alt-Used", "ann:planted@h"), ("Origin", "https://ann:planted@h"), ("SourceMap", "/a.map?token=planted"),
    ("Report-To", "{\"endpoints\":[{\"url\":\"https://ann:planted@h/?key=planted\"}],\"token\":\"planted\"}"),
    ("NEL", "{\"password\": \"planted\"}"), ("X-Original-URL", "/a?password=planted"),
    ("Content-Security-Policy", "report-uri https://ann:planted@h/r?token=planted"),
    ("Via", "1.1 h (https://ann:planted@h/)"), ("X-Error", "error; token=\"planted planted\"; a=b"),
    ("X-Debug", "user=ann,password=planted"), ("X-Debug", "{'token': 'planted'}"),
    ("X-API-Key", "planted"), ("X-Vault-Token", "planted"), ("X-Session-Key", "planted"),
    ("X-DB-Pwd", "planted"),
    ("X-CSRF-Token", "planted"), ("Authentication-Info", "rspauth=\"planted\""),
    ("Sec-Token-Binding", "planted"),
  ]

  static let urls: [String] = [
    "https://ann:planted@h/", "https://planted@h/", "https://planted:@h/", "https://:planted@h/",
    "https://ann:planted@planted@h/", "https://planted@planted:planted@h/a?b=c",
    "https://ann:planted;planted@h/",
    "https://ann:planted&planted@h/", "https://ann:planted/planted@h/", "https://ann:planted#planted@h/",
    "https://ann:planted?planted@h/", "https:/ann:planted@h/", "https:///ann:planted@h/",
    "https:\\\\ann:planted@h\\a",
    "https:ann:planted@h/", "//ann:planted@h/", "ann:planted@h/a", "planted@h",
    "HTTPS://ann:planted@[::1]:1/",
    "https://h/?token=planted", "https://h?access_token=planted", "https://h/?a=1&api_key=planted",
    "/?key=planted",
    "https://h/?a=1;password=planted", "https://h/?a=1;b=2;token=planted;c=3", "?code=planted",
    "https://h/#access_token=planted", "https://h/?a#b?token=planted", "https://h/#/cb?code=planted",
    "https://h/?a=1#b=2&id_token=planted", "https://h/a;jsessionid=planted",
    "https://h/a;token=planted/b?c=d",
    "https://h/a/token=planted/b", "https://h/?api%5Fkey=planted", "https://h/?p%61ssword=planted",
    "https://h/?p%2561ssword=planted", "https://h/?p%252561ssword=planted",
    "https://h/?user[password]=planted",
    "https://h/?token[]=planted", "https://h/?password[0]=planted",
    "https://h/?token=planted/planted?planted",
    "https://h/?password=planted=planted", "https://h/?pass%zzword=1&token=planted",
    "https://h/?next=https://ann:planted@x/", "https://h/?next=https://x/?token=planted",
    "https://h/?next=ann:planted@x", "https://h/?a=b&next=//ann:planted@x/",
    "https://h/?next=https%3A%2F%2Fann%3Aplanted%40x%2F",
    "https://h/?next=https%3A%2F%2Fx%2F%3Ftoken%3Dplanted%26b%3Dc",
    "https://h/?next=https%253A%252F%252Fann%253Aplanted%2540x%252F",
    "https://h/?next=%2525252Fcb%2525253Ftoken%2525253Dplanted",
    "https://h/?next=%2Fcb%23access_token%3Dplanted",
    "https://h/?state=a%3D1%26code%3Dplanted", "https://h/?q=%7B%22token%22%3A%22planted%22%7D",
    "https://h/?q={\"token\":\"planted\"}", "https://h/?q=%257B%2522password%2522%253A%2522planted%2522%257D",
    "https://h/proxy/https%3A%2F%2Fann%3Aplanted%40x%2F", "https://h/https://ann:planted@x/",
    "https://h/https%3A//ann:planted@x/",
    "https://h/?a=x,token=planted", "https://h/?%74oken=planted", "https://h/?TOKEN=planted",
    "https://h/?to-ken=planted",
    "redis://:planted@h/0", "postgres://ann:planted@h:5432/db?sslmode=x", "amqp://planted@h",
    "ftp://ann:planted@h/",
    "https://h/?%7B%22secret%22%3A%22planted%22%7D", "https://ann:planted%40x@h/",
    "https://h/?a=%26token%3Dplanted",
  ]

  static let bodies: [(type: String?, text: String)] = [
    ("application/json", #"{"password": "planted"}"#), ("application/json", #"{"pass\u0077ord": "planted"}"#),
    (
      "application/json",
      #"{"a": {"apiKey": 12345, "secret": ["planted", {"x": "planted"}]}}"#.replacing(
        "12345", with: "\"planted\"")
    ),
    ("application/json", #"{"url": "https:\/\/ann:planted@h\/?token=planted"}"#),
    ("application/json", #"{"url": "https:\u002F\u002Fann:planted\u0040h/"}"#),
    ("application/json", #"{"inner": "{\"token\": \"planted\"}"}"#),
    ("application/json", #"{"inner": "{\"more\": \"{\\\"token\\\": \\\"planted\\\"}\"}"}"#),
    ("application/json", #"{"form": "a=1&password=planted"}"#), ("application/json", #"{"token": "planted"#),
    ("application/json", #"{"q": "/a?token=planted\u0026b=c"}"#), ("application/json", #"["token=planted"]"#),
    ("application/json", #"{"token"  :  "pla\"planted", "b": 1}"#), (nil, #"  {"client_secret": "planted"}"#),
    ("application/x-www-form-urlencoded", "user=ann&password=planted"),
    ("application/x-www-form-urlencoded", "user=ann;password=planted;b=c"),
    ("application/x-www-form-urlencoded", "password=planted planted&b=c"),
    ("application/x-www-form-urlencoded", "a=1\npassword=planted"),
    ("application/x-www-form-urlencoded", "a=%7B%22token%22%3A%22planted%22%7D"),
    ("application/x-www-form-urlencoded", #"{"token": "planted=planted"}"#),
    ("application/x-www-form-urlencoded", "next=https%3A%2F%2Fann%3Aplanted%40h&b=c"),
    ("application/x-www-form-urlencoded", "code=planted&key=planted&pw=planted&ticket=planted"),
    ("text/event-stream", "event: a\ndata: {\"token\": \"planted\"}\n\ndata: /a?token=planted\n\n"),
    (
      "text/html",
      #"<a href="https://ann:planted@h/?a=1&amp;token=planted">it's</a><p data='x' token="planted">"#
    ),
    ("text/html", #"<script>it's = {"token": "planted", 'secret': 'planted'}</script>"#),
    ("text/plain", "see https://ann:planted@h/ and ann:planted@h, token=planted"),
    ("application/x-ndjson", "{\"token\": \"planted\"}\n{\"token\": \"planted\"}\n"),
    (
      "multipart/form-data; boundary=b",
      "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nplanted\r\n--b--\r\n"
    ),
    (
      "multipart/form-data; boundary=b",
      "--b\r\nContent-Disposition: form-data; name=a\r\nX-Token: planted\r\n planted\r\n\r\n{\"token\":\"planted\"}\r\n--b--\r\n"
    ),
    (
      "multipart/mixed; boundary=b",
      "--b\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\na=1;token=planted\r\n--b--\r\n"
    ),
    (
      "multipart/form-data; boundary=b",
      "--b\r\nContent-Location: https://ann:planted@h/\r\n\r\n/a?key=planted\r\n--b--\r\n"
    ),
  ]
}

@Suite("Planted secrets") struct PlantedSecretTests {
  private static let redaction = Redaction.standard

  @Test("There are more than a hundred") func count() {
    #expect(PlantedSecrets.fields.count + PlantedSecrets.urls.count + PlantedSecrets.bodies.count > 150)
  }

  @Test("None is shown of header fields") func fields() {
    for (name, value) in PlantedSecrets.fields {
      let shown = Self.redaction.value(value, ofHeaderField: name)
      #expect(!shown.contains("planted"), "\(name): \(value) is shown as \(shown)")
      #expect(Self.redaction.value(shown, ofHeaderField: name) == shown, "\(name): \(shown) changes")
    }
  }

  @Test("None is shown of URLs, alone, in a text, in a field and in JSON") func urls() throws {
    for url in PlantedSecrets.urls {
      let shown = Self.redaction.url(url)
      #expect(!shown.contains("planted"), "\(url) is shown as \(shown)")
      #expect(Self.redaction.url(shown) == shown, "\(shown) changes")
      // A user without a password looks like an address of mail.
      if url == "planted@h" { continue }
      let texts = [
        Self.redaction.urls(in: "see <\(url)> or \(url)"),
        Self.redaction.value(url, ofHeaderField: "Location"),
        Self.redaction.value("0; url=\(url)", ofHeaderField: "Refresh"),
        Self.redaction.body(String(decoding: try JSONEncoder().encode(["url": url]), as: UTF8.self)),
        Self.redaction.url(
          "https://h/?next=" + (url.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")),
      ]
      for text in texts { #expect(!text.contains("planted"), "\(url) is shown as \(text)") }
    }
  }

  @Test("None is shown of bodies, also of bodies that are cut off") func bodies() {
    for (type, text) in PlantedSecrets.bodies {
      let shown = Self.redaction.body(text, contentType: type)
      #expect(!shown.contains("planted"), "\(text) is shown as \(shown)")
      // A password has no end before its "@".
      let hasUser = ["@", "%40", "u0040"].contains { text.contains($0) }
      for count in 0..<(hasUser ? 0 : text.utf8.count) {
        let part = String(decoding: text.utf8.prefix(count), as: UTF8.self)
        let shown = Self.redaction.body(part, contentType: type)
        #expect(!shown.contains("planted"), "\(part) is shown as \(shown)")
      }
    }
  }

  @Test(
    "What is not secret is shown",
    arguments: [
      "https://h/a@b/c?d=e&f=g%20h#i", "https://h/?email=bob@example.com&q=a%26b", "mailto:bob@example.com",
      "https://h/?resource=acct:bob@example.com", "https://h:8080/a;v=1/b;w=2?x=y;z", "/users/@me?page=2",
      "https://h/?q=%7B%22page%22%3A2%7D", "https://h/?d=YWJj==",
      "https://h/?next=https%3A%2F%2Fx%2F%3Fa%3Db",
      "https://h/%zz?a=%", "C:\\a\\b", "a=b", "12:30", "https://[::1]:80/", "data:text/plain,me@x",
    ])
  func notSecret(text: String) {
    #expect(Self.redaction.url(text) == text)
    #expect(Self.redaction.urls(in: "<\(text)>") == "<\(text)>")
    #expect(Self.redaction.body(text) == text)
  }

  @Test(
    "Only the secret is left out",
    arguments: [
      (
        "https://h/?next=https%3A%2F%2Fann%3Aplanted%40x%2Fa&b=c",
        "https://h/?next=https%3A%2F%2Fredacted%40x%2Fa&b=c"
      ),
      (
        "https://h/proxy/https%3A%2F%2Fann%3Aplanted%40x%2F/b",
        "https://h/proxy/https%3A%2F%2Fredacted%40x%2F/b"
      ),
      ("https://h/?a=1;password=planted;b=2", "https://h/?a=1;password=redacted;b=2"),
      ("https://ann:planted@planted@h/a", "https://redacted@h/a"),
      ("https://ann:planted/x@h/a", "https://redacted@h/a"),
      ("https://h/?next=https://ann:planted@x/&b=c@d", "https://h/?next=https://redacted@x/&b=c@d"),
      ("/cb#access_token=planted&state=1", "/cb#access_token=redacted&state=1"),
      ("/a;jsessionid=planted?b=c", "/a;jsessionid=redacted?b=c"),
    ])
  func masked(text: String, shown: String) {
    #expect(Self.redaction.url(text) == shown)
    #expect(Self.redaction.value(text, ofHeaderField: "Location") == shown)
  }

  @Test("The names of cookies and the attributes of the server are shown") func cookies() {
    let value =
      "id=planted; Path=/a; Domain=h; Max-Age=5; Expires=Wed, 21-Oct-15 07:28:00 GMT; Secure; HttpOnly; SameSite=Lax"
    #expect(
      Self.redaction.value(value, ofHeaderField: "Set-Cookie")
        == value.replacing("planted", with: "<redacted>"))
    #expect(Self.redaction.value("a=1; b=2", ofHeaderField: "cookie") == "a=<redacted>; b=<redacted>")
    #expect(Self.redaction.value("planted", ofHeaderField: "Cookie") == "<redacted>")
    #expect(Self.redaction.value("a=1; =planted", ofHeaderField: "Cookie") == "a=<redacted>; <redacted>")
  }

  @Test("Long and nested texts take no time of note") func limits() {
    let count = 20_000
    for piece in [
      "=", "a=", "%25", "'\\", "\"", "\"\\", "{\"", "://", ":/x:", "&", "[", "\"a\":", "a=\"", "x:/y:z/",
    ] {
      let text = String(repeating: piece, count: count / piece.utf8.count) + "@"
      for shown in [Self.redaction.url(text), Self.redaction.urls(in: text), Self.redaction.body(text)] {
        #expect(shown.utf8.count <= 8 * text.utf8.count + 100, "\(piece)")
      }
    }
  }
}
