import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Cookies in one turn of the engine") struct CookieTurnTests {
  @Test("A cookie that a response brings is found in the same turn, although the storage was empty")
  func sameTurn() async throws {
    let storage = try #require(URLSessionConfiguration.af.ephemeral.httpCookieStorage)
    let cookies = SessionCookies(storage, areSent: true, policy: .always, turn: { 7 })
    let url = "http://a.test/"
    let origin = try #require(Origin(url: url))
    let request = WireRequest(url: url, origin: origin, profile: ConnectionProfile())
    let urlRequest = URLRequest(url: try #require(URL(string: url)))
    let query = CookieQuery(
      request: request, urlRequest: urlRequest, initialOrigin: origin, redirectors: [])
    guard case .none = cookies.header(for: query) else {
      Issue.record("the storage is not empty")
      return
    }
    cookies.store([Array("login=1".utf8)], of: request, for: urlRequest)
    await cookies.storesFinished()
    guard case .header(let header) = cookies.header(for: query) else {
      Issue.record("the cookie is not found")
      return
    }
    #expect(header == "login=1")
  }

  @Test("A request that begins while cookies are being stored waits for them") func beingStored() async throws
  {
    let storage = try #require(URLSessionConfiguration.af.ephemeral.httpCookieStorage)
    let store = CookieStores.shared.store(of: storage)
    let url = "http://a.test/"
    let origin = try #require(Origin(url: url))
    let request = WireRequest(url: url, origin: origin, profile: ConnectionProfile())
    let urlRequest = URLRequest(url: try #require(URL(string: url)))
    store.queue.suspend()
    store.keep([Array("login=1".utf8)], of: CookieSource(request, of: urlRequest, policy: .always))
    guard case .needsReading = store.lookUp() else {
      store.queue.resume()
      Issue.record("the cookie is stored already")
      return
    }
    // It runs until it waits.
    let reading = Task.immediate { await store.read() }
    store.queue.resume()
    #expect(await reading.value.cookies.map(\.name) == ["login"])
  }
}
