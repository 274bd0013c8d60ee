import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Scenarios
import Testing

/// Cookies are sent only where their attributes allow it, over random redirects. Status, scheme, host, port and path of
/// each hop are random, and the value of a cookie contains its origin.
@Suite("Scope of cookies", .timeLimit(.minutes(5)))
struct CookieScopeTests {
  private struct Place {
    var isTLS: Bool
    var host: String
    var port: Int
    var path: String

    var url: String { "http\(isTLS ? "s" : "")://\(host):\(port)\(path)" }

    static func random(_ random: inout StepRandom) -> Place {
      Place(
        isTLS: random.next(2) == 0,
        host: [
          "a.test", "www.a.test", "x.www.a.test", "b.test", "xa.test", "127.0.0.1", "co.uk", "shop.co.uk",
        ][
          random.next(8)],
        port: [80, 443, 8080][random.next(3)], path: ["/", "/p", "/p/q", "/pq"][random.next(4)])
    }
  }

  /// Returns a random cookie field. Its value contains all facts: TLS, host, domain, secure, path, and the path of the
  /// URL.
  private static func setCookie(at place: Place, _ random: inout StepRandom) -> String {
    let domain = ["", "a.test", "www.a.test", "co.uk", "test", "b.test", place.host][random.next(7)]
    let isSecure = random.next(3) == 0
    let path = ["", "/", "/p", "/p/q"][random.next(4)]
    var text = "n\(random.next(6))=\(place.isTLS)|\(place.host)|\(domain)|\(isSecure)|\(path)|\(place.path)"
    if !domain.isEmpty { text += "; Domain=\(domain)" }
    if isSecure { text += "; Secure" }
    if !path.isEmpty { text += "; Path=\(path)" }
    return text
  }

  private static func mayReach(_ place: Place, _ value: some StringProtocol) -> Bool {
    let parts = value.components(separatedBy: "|")
    guard parts.count == 6 else { return false }
    let (wasTLS, host, domain, isSecure, path) = (
      parts[0] == "true", parts[1], parts[2], parts[3] == "true", parts[4]
    )
    if isSecure, !wasTLS || !place.isTLS { return false }
    let labels = { (path: String) -> [String] in path.split(separator: "/").map { String($0) } }
    let folder = path.isEmpty ? Array(labels(parts[5]).dropLast()) : labels(path)
    guard labels(place.path).starts(with: folder) else { return false }
    if domain.isEmpty || domain == "test" || domain == "co.uk" || host == "127.0.0.1" {
      return place.host == host
    }
    return (host == domain || host.hasSuffix("." + domain))
      && (place.host == domain || place.host.hasSuffix("." + domain))
  }

  @Test("Cookies are sent only within their scope", .steps, arguments: 1...6 as ClosedRange<UInt64>)
  func scope(_ seed: UInt64) async throws {
    var random = StepRandom(seed)
    var count = 0
    var replies: [FakeReply] = []
    var starts: [Place] = []
    var places: [Place] = []
    for _ in 0..<60 {
      let hops = 1 + random.next(5)
      var place = Place.random(&random)
      starts.append(place)
      for hop in 1...hops {
        places.append(place)
        let wish = Self.setCookie(at: place, &random)
        guard hop < hops else {
          replies.append(FakeReply.ok.setting(wish))
          break
        }
        place = Place.random(&random)
        let status = [301, 302, 303, 307, 308][random.next(5)]
        replies.append(FakeReply.redirect(status, to: place.url).setting(wish))
      }
    }
    let script = replies
    let fixture = try CookieFixture(FakeTransport { _, index in script[index] })
    for start in starts {
      step("request to \(start.url)")
      let method: HTTPMethod = random.next(2) == 0 ? .get : .post
      #expect(await fixture.session.request(start.url, method: method).end().error == nil)
    }
    step("cookies of the requests")
    #expect(fixture.sent.count == places.count)
    for (place, field) in zip(places, fixture.sent) {
      for pair in field?.components(separatedBy: "; ") ?? [] {
        count += 1
        let value = pair.drop { $0 != "=" }.dropFirst()
        #expect(Self.mayReach(place, value), "\(pair) to \(place.url)")
      }
    }
    #expect(count > 20, "cookies were sent at all")
  }
}

/// Deterministic random numbers.
struct StepRandom {
  private var state: UInt64

  init(_ seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

  mutating func next(_ bound: Int) -> Int {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return Int(state % UInt64(bound))
  }
}
