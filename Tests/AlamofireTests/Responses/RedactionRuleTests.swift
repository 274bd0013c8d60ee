import Alamofire
import Foundation
import Testing

@Suite("Rules of redaction") struct RedactionRuleTests {
  static let redaction = Redaction.standard

  @Test(
    "Names of secret header fields",
    arguments: [
      "Authorization", "proxy-authorization", "Cookie", "Set-Cookie", "X-API-Key", "apikey", "X-Auth-Token",
      "X-Amz-Security-Token", "X-Vault-Token", "X-CSRF-Token", "X-XSRF-TOKEN", "Ocp-Apim-Subscription-Key",
      "x-functions-key", "X-Client-Secret", "X-Session-ID", "X-Signature", "X-Password", "X_Access_Token",
      "Authentication-Info", "X-Auth", "PRIVATE-TOKEN", "X-Goog-Api-Key", "DD-API-KEY",
      "X-Shopify-Access-Token",
    ])
  func secretFields(name: String) {
    #expect(Self.redaction.isSecret(headerField: name))
    #expect(Self.redaction.value("planted", ofHeaderField: name) == "<redacted>")
  }

  @Test(
    "Names of public header fields",
    arguments: [
      "Accept", "Content-Type", "ETag", "WWW-Authenticate", "Idempotency-Key", "Sec-WebSocket-Key",
      "X-Request-ID",
      "Access-Control-Allow-Credentials", "X-RateLimit-Remaining-Tokens", "Keep-Alive", "Location",
      "X-Author",
    ])
  func publicFields(name: String) {
    #expect(!Self.redaction.isSecret(headerField: name))
    #expect(Self.redaction.value("shown", ofHeaderField: name) == "shown")
  }

  @Test(
    "Secrets of URLs",
    arguments: [
      ("https://ann:planted@h/a", "https://redacted@h/a"),
      // GitHub, Stripe and others accept a token as the user name, with and without a password.
      ("https://planted@h/a", "https://redacted@h/a"), ("https://planted:@h/a", "https://redacted@h/a"),
      ("https://planted:x-oauth-basic@h/", "https://redacted@h/"),
      ("https://:planted@h/", "https://redacted@h/"),
      ("https://@h/a@b", "https://@h/a@b"), ("/a@b?c@d", "/a@b?c@d"),
      ("https://h/a?access_token=planted&b=1", "https://h/a?access_token=redacted&b=1"),
      ("https://h/a?b=1&key=planted#top", "https://h/a?b=1&key=redacted#top"),
      ("https://h/a?api%5Fkey=planted", "https://h/a?api%5Fkey=redacted"),
      ("https://h/cb?code=planted&state=s", "https://h/cb?code=redacted&state=s"),
      ("https://h/#access_token=planted&token_type=x", "https://h/#access_token=redacted&token_type=x"),
      // A name that is a secret only in queries.
      ("https://h/cb#code=planted&state=s", "https://h/cb#code=redacted&state=s"),
      (
        "https://b/o?X-Amz-Credential=planted&X-Amz-Date=d&X-Amz-Signature=planted",
        "https://b/o?X-Amz-Credential=redacted&X-Amz-Date=d&X-Amz-Signature=redacted"
      ),
      ("https://a/c?sv=2&sig=planted", "https://a/c?sv=2&sig=redacted"),
      ("/a?password=planted=planted", "/a?password=redacted"), ("https://h/?token", "https://h/?token"),
      ("https://h/?max_tokens=5&page=2", "https://h/?max_tokens=5&page=2"), ("", ""), ("?", "?"),
    ])
  func urls(text: String, shown: String) {
    #expect(Self.redaction.url(text) == shown)
    #expect(Self.redaction.urls(in: "see <\(text)> \"x\"") == "see <\(shown)> \"x\"")
  }

  @Test(
    "User information of URLs without a scheme",
    arguments: [
      ("planted@h/a", "redacted@h/a"), ("ann:planted@h", "redacted@h"), ("//planted@h/a", "//redacted@h/a"),
      ("ann:planted@h/b?next=https://x/", "redacted@h/b?next=https://x/"),
      ("mailto:ann@example.com", "mailto:ann@example.com"),
    ]
  )
  func urlsWithoutScheme(text: String, shown: String) {
    #expect(Self.redaction.url(text) == shown)
  }

  @Test(
    "A backslash between two quoted texts hides no secret",
    arguments: [
      #"user "ada" in DOMAIN\ada sent {"password": "planted"}"#, #"{"a":"b"}\n{"password":"planted"}"#,
      "-H \"Content-Type: application/json\" \\\n\t-d \"{\\\"password\\\":\\\"planted\\\"}\" \\\n\t\"http://h/\"",
      #"{"avatar":"iVBORw0\/pwdX\/abc=","password":"planted"}"#, #"{"k":"token\n=","password":"planted"}"#,
      #"{"q":"token=","password":"planted"}"#, #"{"path":"/secret/foo=","password":"planted"}"#,
    ])
  func backslashes(text: String) {
    let shown = Redaction.standard.body(text, contentType: nil)
    #expect(!shown.contains("planted") && shown.contains("password"), "\(shown)")
  }

  @Test(
    "Secrets of bodies",
    arguments: [
      (#"{"password": "planted", "a": 1}"#, #"{"password": "redacted", "a": 1}"#),
      (#"{"a": {"apiKey":12345678}, "b": "password"}"#, #"{"a": {"apiKey":"redacted"}, "b": "password"}"#),
      (#"[{"secret": ["planted", {"x": "planted"}]}, 2]"#, #"[{"secret": "redacted"}, 2]"#),
      (#"{"client_secret": "pla\"nted", "b": 2}"#, #"{"client_secret": "redacted", "b": 2}"#),
      (#"{"token": "plant"#, #"{"token": "redacted""#), (#"{"token": "#, #"{"token": "redacted""#),
      (#"{"a": "https://h/?token=planted"}"#, #"{"a": "https://h/?token=redacted"}"#), (#"{"tok"#, #"{"tok"#),
      (
        #"{"a": "https:\/\/h\/?a=1\u0026token=planted", "b": "?"}"#,
        #"{"a": "https://h/?a=1&token=redacted", "b": "?"}"#
      ),
      // The escapes of the other characters of a string are restored.
      (
        #"{"a": "C:\\b\n\r\t\u0001\u001F?token=planted"}"#,
        #"{"a": "C:\\b\n\r\t\u0001\u001f?token=redacted"}"#
      ), (#"{"a": "\"b\" ?token=planted"}"#, #"{"a": "\"b\" ?token=redacted"}"#),
      (
        #"["https://ann:planted@h/", {"token": "planted"}]"#,
        #"["https://redacted@h/", {"token": "redacted"}]"#
      ),
      ("see https://h/?token=planted now", "see https://h/?token=redacted now"), ("", ""), ("[", "["),
    ])
  func bodies(text: String, shown: String) {
    #expect(Self.redaction.body(text) == shown)
  }

  @Test("Secrets of forms") func forms() {
    let type = "application/x-www-form-urlencoded; charset=utf-8"
    #expect(
      Self.redaction.body("user=ann&password=planted&code=planted", contentType: type)
        == "user=ann&password=redacted&code=redacted")
  }

  @Test("Secrets that begin with a combining mark are masked as others") func marks() {
    for (name, value, shown) in [
      ("Cookie", "a=\u{301}planted=planted; b=\u{301}planted", "a=<redacted>; b=<redacted>"),
      ("Cookie", "a=\u{301}b;\u{301}c=planted=planted", "a=<redacted>;\u{301}c=<redacted>"),
      ("Cookie", "a\u{D4E}=planted=planted", "a\u{D4E}=<redacted>"),
      ("Set-Cookie", "a=b; Path=/,\u{301} c=\u{301}planted", "a=<redacted>; Path=<redacted>"),
    ] {
      #expect(Self.redaction.value(value, ofHeaderField: name).utf8.elementsEqual(shown.utf8), "\(value)")
    }
    let type = "multipart/form-data; boundary=\"b\""
    for field in [
      "Content-Disposition:\u{301} form-data; name=\"password\"",
      "Content-Disposition: x;\u{301}; name=password",
      "Content-Disposition: form-data\r\n ; name=password",
      "Content-Disposition: form-data; filename=\"a\rb\"; name=\"password\"",
      "X-K\(String(repeating: "a", count: 300))-token: planted\r\n planted",
      "X-Api-Key:\u{301}planted\r\n planted",
    ] {
      let content = field.utf8.contains(UInt8(ascii: "K")) ? "" : "planted"
      let body = "--b\r\n\(field)\r\n\r\n\(content)\r\n--b--\r\n"
      let shown = Self.redaction.body(body, contentType: type)
      #expect(!shown.utf8.elementsEqual(body.utf8) && !shown.contains("planted"), "\(shown)")
    }
  }

  @Test("Secrets of multipart bodies, also of one that was cut off") func multipart() {
    let body = [
      "--b\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nann\r\n",
      "--b\r\ncontent-disposition: form-data; name=\"pass\\\"word\"\r\n\r\nplanted\r\nplanted\r\n",
      "--b\r\nContent-Disposition: form-data;\r\n name=key\r\n\r\nplanted\r\n",
      "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"token\"\r\n",
      "Content-Type: application/json\r\n\r\n{\"token\": \"planted\"}\r\n", "--b--\r\n",
    ].joined()
    let type = "multipart/form-data; boundary=\"b\""
    let shown = Self.redaction.body(body, contentType: type)
    #expect(!shown.contains("planted"), "\(shown)")
    #expect(shown.contains("\r\n\r\nann\r\n--b\r\n") && shown.hasSuffix("\"}\r\n--b--\r\n"))
    #expect(shown.components(separatedBy: "redacted").count == 4)
    for count in 0...body.count {
      let shown = Self.redaction.body(String(body.prefix(count)), contentType: type)
      #expect(!shown.contains("plant"), "\(shown)")
    }
    #expect(Self.redaction.body("--b", contentType: "multipart/form-data") == "--b")
  }

  @Test("Multipart bodies with many continued lines or parts do not take long") func longMultipart() {
    for (first, line, count) in [("--b\na:\n", " a\n", 100_000), ("", "--b\n", 100_000)] {
      let body = first + String(repeating: line, count: count)
      var shown = ""
      let time = processorTime {
        shown = Self.redaction.body(body, contentType: "multipart/mixed; boundary=b")
      }
      #expect(shown == body)
      #expect(time < .seconds(20), "\(count) lines took \(time)")
    }
  }

  @Test("Names that the caller adds are secret too") func additionalNames() {
    let redaction = Redaction(additionalNames: ["X-Customer"]).adding(["iban"])
    #expect(redaction.isSecret(headerField: "x_customer"))
    #expect(
      redaction.url("https://h/?iban=planted&xcustomer=planted")
        == "https://h/?iban=redacted&xcustomer=redacted")
    #expect(redaction.body(#"{"IBAN": "planted"}"#) == #"{"IBAN": "redacted"}"#)
    #expect(!Self.redaction.isSecret(headerField: "X-Customer"))
    #expect(
      redaction.fields([HTTPHeader(name: "X-Customer", value: "planted"), HTTPHeader(name: "A", value: "b")])
        .map(\.value) == ["<redacted>", "b"])
  }
}
