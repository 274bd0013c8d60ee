import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Testing

@testable import Alamofire

@Suite("The settings of a session", .timeLimit(.minutes(1))) struct SessionSettingsTests {
  private final class OwnProtocol: URLProtocol {}

  private static let usual = ["X-Common": "1", "Content-Length": "9", "transfer-encoding": "chunked"]

  private func settings(
    _ fields: [String: String] = usual,
    _ change: (URLSessionConfiguration, inout TransportOptions) -> Void = { _, _ in }
  ) -> SessionSettings {
    let configuration = URLSessionConfiguration.uncached
    configuration.httpAdditionalHeaders = fields
    configuration.timeoutIntervalForRequest = 33
    configuration.timeoutIntervalForResource = 3600
    var options = TransportOptions()
    change(configuration, &options)
    return SessionSettings(configuration, options: options, trust: nil)
  }

  private func text(_ fields: [HTTPHeader]) -> [String] { fields.map { "\($0.name): \($0.value)" } }

  @Test("A request adds its fields to those of the session, without fields of the framing") func fields() {
    let settings = settings()
    #expect(text(settings.fields(adding: nil)) == ["X-Common: 1", "Accept: */*"])
    #expect(text(settings.fields(adding: [:])) == ["X-Common: 1", "Accept: */*"])
    #expect(
      text(settings.fields(adding: ["B": "2", "A": "1"])) == ["X-Common: 1", "A: 1", "B: 2", "Accept: */*"])
    let own = ["Accept": "a/b", "X-Common": "2", "Content-Length": "3", "Transfer-Encoding": "gzip"]
    #expect(text(settings.fields(adding: own)) == ["X-Common: 2", "Accept: a/b"])
    let repeated = [
      HTTPHeader(name: "host", value: "b.test"), HTTPHeader(name: "X-R", value: "1"),
      HTTPHeader(name: "X-R", value: "2"), HTTPHeader(name: "Content-length", value: "1"),
    ]
    #expect(
      text(settings.fields(adding: ["A": "1"], repeated: repeated))
        == ["X-Common: 1", "A: 1", "Accept: */*", "X-R: 1", "X-R: 2"])
    #expect(text(settings.fields(adding: nil, repeated: [])) == ["X-Common: 1", "Accept: */*"])
    #expect(text(settings.fields(named: nil)) == ["X-Common: 1"])
    #expect(text(settings.fields(named: ["Content-Length": "3"])) == ["X-Common: 1", "Content-Length: 3"])
  }

  @Test("A field that cannot be sent is found, wherever it comes from") func violations() {
    let (good, bad) = (settings(), settings(["X-Bad": "a\r\nb"]))
    let fields = good.fields(adding: nil)
    #expect(good.violation(method: "GET", own: nil, all: fields) == nil)
    #expect(good.violation(method: "POST", own: nil, all: fields) == nil)
    #expect(good.violation(method: "G ET", own: nil, all: fields) != nil)
    let own = ["X-Own": "a\nb"]
    #expect(good.violation(method: "GET", own: own, all: good.fields(adding: own)) != nil)
    let repeated = fields + [HTTPHeader(name: "X-R", value: "a\nb")]
    #expect(good.violation(method: "GET", own: nil, all: repeated) != nil)
    for method in ["GET", "POST"] {
      #expect(bad.violation(method: method, own: nil, all: bad.fields(adding: nil)) != nil)
    }
  }

  @Test(
    "The time limit of a request is that of the configuration unless it has its own",
    arguments: [
      (60, .seconds(33)), (7, .seconds(7)), (0.0001, .milliseconds(1)), (0, nil), (-1, nil), (1e9, nil),
    ] as [(TimeInterval, Duration?)])
  func idleTimeout(own: TimeInterval, limit: Duration?) throws {
    var request = try URLRequest(url: "http://a.test/", method: .get)
    request.timeoutInterval = own
    let settings = settings()
    #expect(settings.idleTimeout(of: request, settings.profile) == limit)
    #expect(settings.idleTimeout(settings.profile) == .seconds(33))
    let limited = self.settings { $1.timeLimits.idle = .seconds(5) }
    #expect(limited.idleTimeout(of: request, limited.profile) == .seconds(5))
    #expect(limited.idleTimeout(limited.profile) == .seconds(5))
  }

  @Test("The whole time limit is that of the options, then that of the configuration") func deadline() throws
  {
    func left(_ settings: SessionSettings) -> Duration? {
      let now = MonotonicTime.now
      return settings.deadline(settings.profile).map { now.duration(to: $0) }
    }
    let usual = try #require(left(settings()))
    #expect(usual >= .seconds(3600) && usual < .seconds(7000))
    let limited = try #require(left(settings { $1.timeLimits.total = .seconds(10_000) }))
    #expect(limited >= .seconds(10_000))
    for seconds in [0, -1, 1e9] as [TimeInterval] {
      #expect(
        left(settings { configuration, _ in configuration.timeoutIntervalForResource = seconds }) == nil)
    }
  }

  @Test("Other settings are those of the configuration") func others() {
    let usual = settings()
    #expect(usual.protocolClasses.isEmpty && usual.sendsCookies && !usual.waitsForConnectivity)
    let changed = settings { configuration, _ in
      configuration.protocolClasses = [OwnProtocol.self] + (configuration.protocolClasses ?? [])
      configuration.httpShouldSetCookies = false
      configuration.httpCookieAcceptPolicy = .never
      configuration.waitsForConnectivity = true
      configuration.httpMaximumConnectionsPerHost = 9
    }
    #expect(changed.protocolClasses.map { ObjectIdentifier($0) } == [ObjectIdentifier(OwnProtocol.self)])
    #expect(!changed.sendsCookies && changed.cookiePolicy == .never && changed.waitsForConnectivity)
    #expect(changed.profile.connectionsPerHost == 9)
  }
}
