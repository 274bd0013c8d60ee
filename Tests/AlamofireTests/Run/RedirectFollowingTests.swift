import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Following redirects", .timeLimit(.minutes(5)))
struct RedirectFollowingTests {
  struct Row: CustomTestStringConvertible {
    let status: Int
    let method: String
    let next: String
    let resendsBody: Bool
    var testDescription: String { "\(status) \(method)" }
  }

  static let rows: [Row] = [
    Row(status: 301, method: "GET", next: "GET", resendsBody: false),
    Row(status: 301, method: "HEAD", next: "HEAD", resendsBody: false),
    Row(status: 301, method: "POST", next: "GET", resendsBody: false),
    Row(status: 301, method: "PUT", next: "PUT", resendsBody: true),
    Row(status: 302, method: "GET", next: "GET", resendsBody: false),
    Row(status: 302, method: "POST", next: "GET", resendsBody: false),
    Row(status: 302, method: "DELETE", next: "DELETE", resendsBody: true),
    Row(status: 303, method: "POST", next: "GET", resendsBody: false),
    Row(status: 303, method: "PUT", next: "GET", resendsBody: false),
    Row(status: 303, method: "HEAD", next: "HEAD", resendsBody: false),
    Row(status: 307, method: "POST", next: "POST", resendsBody: true),
    Row(status: 307, method: "PATCH", next: "PATCH", resendsBody: true),
    Row(status: 308, method: "POST", next: "POST", resendsBody: true),
    Row(status: 308, method: "GET", next: "GET", resendsBody: false),
  ]

  @Test("Options that follow a client certificate hold at other origins, too") func optionsElsewhere() async {
    let fake = FakeTransport(.redirect(302, to: "https://b.test/"), .text("moved"))
    let identity = ClientIdentity(certificates: [], subject: "", privateKey: Data())
    let request = Session.retained(fake: fake).request("https://a.test/")
      .authenticate(with: ClientIdentityCredential(identity))
      .transportOptions { $0.bodySizeLimit = 1_234 }
    #expect(await request.end().value == Data("moved".utf8))
    #expect(fake.requests.map { $0.profile.options.clientIdentity != nil } == [true, false])
    #expect(fake.requests.map(\.profile.options.bodySizeLimit) == [1_234, 1_234])
  }

  @Test("The status decides about method and body of the next hop", arguments: rows)
  func methods(row: Row) async throws {
    let fake = FakeTransport(.redirect(row.status, to: "/next"))
    var request = try URLRequest(url: "http://a.test/", method: HTTPMethod(rawValue: row.method))
    let hasBody = row.method != "GET" && row.method != "HEAD"
    if hasBody {
      request.httpBody = Data("body".utf8)
      request.headers.add(.contentType("text/plain"))
    }
    let response = await Session.retained(fake: fake).request(request).end()
    #expect(response.error == nil)
    #expect(fake.requests.count == 2)
    let next = try #require(fake.requests.last)
    #expect(next.url == "http://a.test/next")
    #expect(next.method == row.next)
    #expect(next.body.bytes == (row.resendsBody ? Data("body".utf8) : nil))
    #expect((next.value("Content-Type") != nil) == row.resendsBody)
    #expect(response.response?.url?.absoluteString == "http://a.test/next")
    #expect(response.metrics?.redirectCount == 1)
    #expect(response.metrics?.transactionMetrics.count == 2)
  }

  @Test(
    "A location is resolved against the URL of its hop",
    arguments: [
      ("next", "http://a.test/b/next"), ("../x?y", "http://a.test/x?y"), ("?q", "http://a.test/b/c?q"),
      ("//b.test/z", "http://b.test/z"), ("HTTP://B.test:81/z", "http://b.test:81/z"),
      ("http://user:secret@b.test/z", "http://b.test/z"), ("/a b", "http://a.test/a%20b"),
      ("https://a.test/s", "https://a.test/s"),
    ])
  func locations(location: String, target: String) async {
    let fake = FakeTransport(.redirect(302, to: location))
    let request = Session.retained(fake: fake).request("http://a.test/b/c")
    #expect(await request.end().error == nil)
    #expect(fake.urls.last == target)
    #expect(request.credential == nil)
    #expect(fake.requests.allSatisfy { !$0.url.contains("secret") && $0.value("Authorization") == nil })
  }

  @Test(
    "Credentials stay with their origin",
    arguments: [
      ("http://a.test/next", true), ("http://a.test:8080/next", false), ("https://a.test/next", false),
      ("http://b.test/next", false), ("http://sub.a.test/next", false),
    ])
  func credentials(location: String, areKept: Bool) async throws {
    let fake = FakeTransport(.redirect(307, to: location))
    var options = TransportOptions()
    options.protectedHeaders = ["X-Api-Key"]
    let response = await Session.retained(fake: fake, options: options).request(
      "http://a.test/",
      headers: [
        "Authorization": "Bearer s", "Cookie": "a=1", "x-api-key": "k", "X-Other": "o", "Host": "a.test",
      ]
    ).end()
    #expect(response.error == nil)
    let next = try #require(fake.requests.last)
    for name in ["Authorization", "Cookie", "X-Api-Key"] {
      #expect((next.value(name) != nil) == areKept, "\(name)")
    }
    #expect(next.value("X-Other") == "o")
    #expect((next.value("Host") != nil) == areKept)
  }

  @Test("The twenty-first redirect is refused") func limit() async throws {
    let fake = FakeTransport { _, index in .redirect(302, to: "/\(index + 1)") }
    let response = await Session.retained(fake: fake).request("http://a.test/").end()
    let error = try #require(response.error?.underlyingError as? URLError)
    #expect(error.code == .httpTooManyRedirects)
    #expect(fake.requests.count == 21)
    #expect(response.response?.statusCode == 302)
  }

  @Test("The limit of redirects can be changed") func changedLimit() async throws {
    let fake = FakeTransport { _, index in .redirect(302, to: "/\(index + 1)") }
    let session = Session.retained(fake: fake)
    let response = await session.request("http://a.test/").transportOptions { $0.redirectLimit = 0 }.end()
    #expect((response.error?.underlyingError as? URLError)?.code == .httpTooManyRedirects)
    #expect(fake.requests.count == 1)
  }

  @Test("Options that are changed during an attempt apply to the next one")
  func optionsOfTheAttempt() async throws {
    let changed = Recorder<Request>()
    let fake = FakeTransport { _, index in
      for request in changed.values { request.transportOptions { $0.redirectLimit = 0 } }
      return index == 0 ? .redirect(302, to: "/1") : .text("ok")
    }
    let request = Session.retained(fake: fake).request("http://a.test/", shouldAutomaticallyResume: false)
    changed.add(request)
    let ends = Recorder<AFDataResponse<Data?>>()
    request.response(queue: .global()) { ends.add($0) }.resume()
    #expect(try await ends.value(0).data == Data("ok".utf8))
    #expect(fake.requests.count == 2)
  }

  @Test(
    "A location with another scheme is refused",
    arguments: ["ftp://a.test/", "file:///etc/passwd", "data:,x", "javascript:1"])
  func schemes(location: String) async throws {
    let fake = FakeTransport(.redirect(302, to: location))
    let response = await Session.retained(fake: fake).request("http://a.test/").end()
    #expect((response.error?.underlyingError as? URLError)?.code == .unsupportedURL)
    #expect(fake.requests.count == 1)
  }

  @Test("A location without a host is refused") func missingHost() async {
    let fake = FakeTransport(.redirect(302, to: "http:///x"))
    let response = await Session.retained(fake: fake).request("http://a.test/").end()
    #expect((response.error?.underlyingError as? URLError)?.code == .redirectToNonExistentLocation)
  }

  @Test("A status in 3xx that is not a redirect is delivered", arguments: [300, 304, 305, 306])
  func responses(status: Int) async {
    let fake = FakeTransport(.redirect(status, to: "/x"))
    let response = await Session.retained(fake: fake).request("http://a.test/").end()
    #expect(response.error == nil)
    #expect(response.response?.statusCode == status)
    #expect(fake.requests.count == 1)
  }

  @Test("A redirect without Location is delivered") func missingLocation() async {
    let response = await Session.retained(fake: FakeTransport(.status(302))).request("http://a.test/").end()
    #expect(response.error == nil)
    #expect(response.response?.statusCode == 302)
    #expect(response.data == nil)
  }

  @Test("A failure after a redirect has the metrics of both hops") func metrics() async throws {
    let late = FakeReply(
      failure: TransportFailure(.connectionLost, "lost", metrics: TransferMetrics()), hasHead: false)
    let fake = FakeTransport(.redirect(302, to: "/next"), late)
    let response = await Session.retained(fake: fake).request("http://a.test/").end()
    #expect((response.error?.underlyingError as? URLError)?.failingURL?.path == "/next")
    #expect(response.metrics?.transactionMetrics.count == 2)
    #expect(response.response == nil)
  }

  @Test("A redirect inherits the fragment") func fragment() async {
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let response = await Session.retained(fake: fake).request("http://a.test/#here").end()
    #expect(response.response?.url?.absoluteString == "http://a.test/next#here")
  }

  @Test("Progress and head handlers receive only the final response") func handlers() async {
    var redirect = FakeReply.redirect(302, to: "/next")
    redirect.chunks = [Data("moved, see elsewhere".utf8)]
    let fake = FakeTransport(redirect, .text("four"))
    let heads = Recorder<Int>()
    let completed = Recorder<Int64>()
    let request = Session.retained(fake: fake).request("http://a.test/")
      .onHTTPResponse(on: .global()) { (response: HTTPURLResponse) in heads.add(response.statusCode) }
    let queue = DispatchQueue(label: "progress")
    request.downloadProgress(queue: queue) { completed.add($0.completedUnitCount) }
    let response = await request.end()
    #expect(response.value == Data("four".utf8))
    queue.sync {}
    #expect(await heads.wait(for: 1) == [200])
    #expect(completed.values == [4])
    #expect(request.downloadProgress.fractionCompleted == 1)
  }
}
