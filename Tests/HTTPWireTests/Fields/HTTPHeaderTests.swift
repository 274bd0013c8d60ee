import HTTPWire
import Testing

struct HTTPHeaderTests {
  @Test(
    "Factories use the registered names",
    arguments: [
      (HTTPHeader.accept("v"), "Accept: v"),
      (.acceptCharset("v"), "Accept-Charset: v"),
      (.acceptLanguage("v"), "Accept-Language: v"),
      (.acceptEncoding("v"), "Accept-Encoding: v"),
      (.authorization("v"), "Authorization: v"),
      (.contentDisposition("v"), "Content-Disposition: v"),
      (.contentEncoding("v"), "Content-Encoding: v"),
      (.contentType("v"), "Content-Type: v"),
      (.userAgent("v"), "User-Agent: v"),
      (.websocketProtocol("v"), "Sec-WebSocket-Protocol: v"),
    ])
  func factories(header: HTTPHeader, line: String) {
    #expect(header.description == line)
  }

  @Test("Basic credentials are the base64 of their UTF-8")
  func basicCredentials() {
    // RFC 7617 §2 and §2.1.
    #expect(
      HTTPHeader.authorization(username: "Aladdin", password: "open sesame").value
        == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
    #expect(HTTPHeader.authorization(username: "test", password: "123£").value == "Basic dGVzdDoxMjPCow==")
  }

  @Test("Bearer tokens are not encoded")
  func bearerToken() {
    #expect(HTTPHeader.authorization(bearerToken: "abc.def").description == "Authorization: Bearer abc.def")
  }
}
