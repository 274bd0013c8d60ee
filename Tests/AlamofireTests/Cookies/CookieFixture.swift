import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

/// A session with its own cookies and a fake transport.
struct CookieFixture {
  let fake: FakeTransport
  let session: Session
  let storage: HTTPCookieStorage

  /// Makes the session with an empty cookie storage.
  ///
  /// - Parameter fake: The transport that replies.
  init(
    _ fake: FakeTransport = FakeTransport(), configure: (URLSessionConfiguration) -> Void = { _ in },
    interceptor: (any RequestInterceptor)? = nil
  ) throws {
    let configuration = URLSessionConfiguration.af.ephemeral
    let storage = try #require(configuration.httpCookieStorage)
    configure(configuration)
    self.storage = storage
    self.fake = fake
    session = Session.retained(fake: fake, configuration: configuration, interceptor: interceptor)
  }

  /// The `Cookie` field of each hop. Two fields of one request are an error and shown as such.
  var sent: [String?] {
    fake.requests.map { request in
      let values = request.fields.filter { FieldName.equal($0.name, "Cookie") }.map(\.value)
      return values.isEmpty ? nil : values.joined(separator: " and ")
    }
  }

  func put(_ name: String, _ value: String = "1", domain: String, path: String = "/", secure: Bool = false) {
    var properties: [HTTPCookiePropertyKey: Any] = [.name: name, .value: value, .domain: domain, .path: path]
    if secure { properties[.secure] = "TRUE" }
    if let cookie = HTTPCookie(properties: properties) { storage.setCookie(cookie) }
  }

  func cookie(_ name: String) -> HTTPCookie? { storage.cookies?.first { $0.name == name } }
}

extension FakeReply {
  func setting(_ cookies: String...) -> FakeReply {
    var copy = self
    copy.fields += cookies.map { HTTPHeader(name: "Set-Cookie", value: $0) }
    return copy
  }
}
