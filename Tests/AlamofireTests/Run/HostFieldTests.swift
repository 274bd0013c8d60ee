import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

/// Requests whose caller sets a `Host` field, which applies to one origin.
@Suite("Host fields and redirects", .timeLimit(.minutes(5)))
struct HostFieldTests {
  private func hosts(_ replies: FakeReply..., handler: Redirector? = nil) async -> [String?] {
    let fake = FakeTransport { _, index in index < replies.count ? replies[index] : .ok }
    let request = Session.retained(fake: fake).request("http://a.test/", headers: ["Host": "shop.test"])
    if let handler { request.redirect(using: handler) }
    #expect(await request.end().error == nil)
    return fake.requests.map { $0.value("Host") }
  }

  @Test("The field goes to the same origin") func sameOrigin() async {
    #expect(
      await hosts(.redirect(302, to: "/b"), .redirect(307, to: "http://a.test:80/c")) == [
        "shop.test", "shop.test", "shop.test",
      ])
  }

  @Test(
    "The field goes to no other origin, and does not come back",
    arguments: ["http://b.test/", "http://a.test:81/", "https://a.test/"])
  func otherOrigin(location: String) async {
    #expect(
      await hosts(.redirect(302, to: location), .redirect(302, to: "http://a.test/")) == [
        "shop.test", nil, nil,
      ])
  }

  @Test("A handler that leads elsewhere does not take the field along") func handler() async {
    let elsewhere = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        request.url = URL(string: "http://b.test/")
        return request
      })
    #expect(await hosts(.redirect(302, to: "/b"), handler: elsewhere) == ["shop.test", nil])
    let named = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        request.url = URL(string: "http://b.test/")
        request.setValue("other.test", forHTTPHeaderField: "Host")
        return request
      })
    #expect(await hosts(.redirect(302, to: "/b"), handler: named) == ["shop.test", "other.test"])
    let same = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        request.setValue("1", forHTTPHeaderField: "X-Changed")
        return request
      })
    #expect(await hosts(.redirect(302, to: "/b"), handler: same) == ["shop.test", "shop.test"])
  }
}
