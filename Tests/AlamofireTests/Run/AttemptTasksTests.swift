import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

/// The tasks that show the attempts of a request.
@Suite("Tasks of attempts") struct AttemptTasksTests {
  private let request = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    .request("http://a.test/")

  private func view(_ path: String) -> TaskRecord.View {
    TaskRecord.View(currentRequest: URL(string: "http://a.test/\(path)").map { URLRequest(url: $0) })
  }

  /// Describes tasks: the path that an ended one shows, or that it has not ended.
  private func texts(_ tasks: [URLSessionTask]) -> [String] {
    tasks.map { task in
      guard let record = (task as? any RecordedTask)?.record else { return "no task of a request" }
      return record.isOver ? record.view.currentRequest?.url?.lastPathComponent ?? "nothing" : "runs"
    }
  }

  @Test("Each attempt has one task, which shows its own end, also if it is created later") func attempts() {
    var tasks = AttemptTasks()
    _ = tasks.begin()
    _ = tasks.begin()
    tasks.isNotified = true
    #expect(tasks.count == 1 && tasks.hasBegun && !tasks.isSeen)
    tasks.endForRetry(view("1"))
    #expect(!tasks.hasBegun && !tasks.isNotified)
    tasks.endForRetry(view("not sent"))
    _ = tasks.begin()
    let seen = tasks.make(of: request) { view("unused") }
    #expect(texts(seen) == ["1", "runs"] && tasks.count == 2 && tasks.isSeen)
    tasks.isNotified = true
    tasks.endForRetry(view("2"))
    #expect(texts(seen) == ["1", "2"] && !tasks.isNotified)
    _ = tasks.begin()
    tasks.end(nil)
    #expect(!tasks.hasBegun)
    let later = tasks.make(of: request) { view("3") }
    #expect(texts(later) == ["1", "2", "3"])
    #expect(zip(seen, later).allSatisfy { $0 === $1 }, "a task is created once")
    _ = tasks.begin()
    let fourth = tasks.make(of: request) { view("unused") }
    tasks.end(view("4"))
    #expect(texts(fourth) == ["1", "2", "3", "4"])
  }

  @Test("If earlier attempts are not kept, an attempt replaces their tasks") func forgottenAttempts() {
    var tasks = AttemptTasks()
    _ = tasks.begin()
    tasks.endForRetry(view("1"), keeps: false)
    #expect(texts(tasks.make(of: request) { view("unused") }) == ["1"], "until the next attempt begins")
    _ = tasks.begin()
    let seen = tasks.make(of: request) { view("unused") }
    #expect(texts(seen) == ["runs"] && tasks.count == 1 && tasks.isSeen)
    tasks.endForRetry(view("2"), keeps: false)
    #expect(texts(seen) == ["2"])
    for path in ["3", "4"] {
      _ = tasks.begin()
      #expect(tasks.count == 1 && !tasks.isSeen)
      tasks.endForRetry(view(path), keeps: false)
    }
    #expect(texts(tasks.make(of: request) { view("unused") }) == ["4"])
  }

  @Test("The tasks of the last hundred attempts are kept", arguments: [0, 1, 30, 120])
  func longHistory(seenCount: Int) {
    var tasks = AttemptTasks()
    var seen: [URLSessionTask] = []
    for index in 1...250 {
      let forgotten = tasks.begin()
      #expect(forgotten.count == (index > 100 ? 1 : 0), "attempt \(index)")
      if index == seenCount { seen = tasks.make(of: request) { view("unused") } }
      tasks.endForRetry(view("\(index)"))
    }
    #expect(tasks.count == 100 && !tasks.isSeen)
    let all = tasks.make(of: request) { view("unused") }
    #expect(texts(all) == (151...250).map { "\($0)" })
    #expect(
      seen.count == min(seenCount, 100) && texts(seen.suffix(1)) == (seenCount > 0 ? ["\(seenCount)"] : []))
    _ = tasks.begin()
    #expect(texts(tasks.make(of: request) { view("unused") }) == (152...250).map { "\($0)" } + ["runs"])
  }

  @Test("A task keeps its first end, and no longer controls the request") func end() {
    let record = TaskRecord(of: request)
    #expect(record.currentOwner === request && !record.isOver)
    record.end(view("1"))
    record.end(view("2"))
    #expect(record.view.currentRequest?.url?.lastPathComponent == "1" && record.view.state == .completed)
    #expect(record.isOver && record.currentOwner == nil && record.owner === request)
  }

  private func hop(_ url: String, _ method: String = "GET", body: RequestBody = .none) throws -> WireRequest {
    let origin = try #require(Origin(url: url))
    return WireRequest(url: url, origin: origin, profile: ConnectionProfile()) { parts in
      parts.method = method
      parts.fields = [HTTPHeader(name: "A", value: "1"), HTTPHeader(name: "A", value: "2")]
      parts.body = body
    }
  }

  @Test("A task shows the request of a hop that has another URL or method") func hops() throws {
    var original = try URLRequest(url: "http://a.test/x", method: .post, headers: ["B": "3"])
    original.httpBody = Data("body".utf8)
    #expect(URLRequest(hop: try hop("http://a.test/x", "POST"), of: original) == nil)
    #expect(URLRequest(hop: try hop("http://a.test/y"), of: nil) == nil)
    for (url, method) in [
      ("http://a.test/x", "GET"), ("http://a.test/y", "POST"), ("https://b.test/", "PUT"),
    ] {
      let shown = try #require(URLRequest(hop: try hop(url, method), of: original), "\(method) \(url)")
      #expect(shown.url?.absoluteString == url && shown.httpMethod == method)
      #expect(shown.allHTTPHeaderFields == ["A": "1,2"] && shown.httpBody == nil)
      let body = RequestBody.bytes(Data("body".utf8))
      #expect(URLRequest(hop: try hop(url, method, body: body), of: original)?.httpBody == original.httpBody)
    }
  }

  @Test("The request of a WebSocket connection keeps its scheme") func socketHops() throws {
    for (scheme, plain) in [("ws", "http"), ("wss", "https"), ("WSS", "https")] {
      let original = try URLRequest(url: "\(scheme)://a.test/x", method: .get)
      let shown = URLRequest(hop: try hop("\(plain)://a.test/y"), of: original)?.url?.absoluteString
      #expect(shown == "\(scheme.lowercased())://a.test/y")
    }
    let socket = try URLRequest(url: "ws://a.test/x", method: .get)
    #expect(URLRequest(hop: try hop("http://a.test/x"), of: socket) == nil)
  }

  @Test("A request is sent like another one if its URL, method, body and fields are equal") func equality()
    throws
  {
    var request = try URLRequest(url: "http://a.test/x", method: .post, headers: ["A": "1"])
    request.httpBody = Data("body".utf8)
    request.setValue("jos\u{E9}", forHTTPHeaderField: "B")
    var same = request
    same.cachePolicy = .reloadIgnoringLocalCacheData
    #expect(request.isSent(like: same))
    let changes: [(inout URLRequest) -> Void] = [
      { $0.url = URL(string: "http://a.test/y") }, { $0.httpMethod = "PUT" }, { $0.httpBody = nil },
      { $0.setValue("2", forHTTPHeaderField: "A") }, { $0.setValue(nil, forHTTPHeaderField: "A") },
      { $0.setValue("1", forHTTPHeaderField: "C") }, { $0.setValue("jose\u{301}", forHTTPHeaderField: "B") },
    ]
    for (index, change) in changes.enumerated() {
      var other = request
      change(&other)
      #expect(!request.isSent(like: other) && !other.isSent(like: request), "change \(index)")
    }
  }
}
