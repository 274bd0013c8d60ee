import Foundation
import HTTPWire

/// The kind of a request, as far as its hops have to know it. Each requirement has the answer of a data request.
///
/// A kind is an object, because the stages ask it often, and a reference is copied at little cost.
protocol HopKind: AnyObject, Sendable {
  var traits: KindTraits { get }

  /// Returns the URL with which the engine serves a URL from the caller or from a server.
  func engineURL(of url: String) -> String

  /// Returns the URL of a hop as the caller writes it.
  func shownURL(of url: String) -> String

  /// Returns the scheme in the caller's spelling for one of the engine's schemes.
  func callerScheme(for scheme: String) -> String

  /// Returns the code that answers the hops; `nil` if it depends on their scheme.
  func handler(of request: WireRequest, in services: Services) throws(AFError) -> HopHandler?

  /// Returns the URL to which a request for `url` goes instead; `nil` if it goes to `url`.
  func redirectedURL(of url: String) -> String?

  /// Notes that a redirect is followed.
  func redirectFollowed()

  /// Notes that a redirect is followed as the server proposed it.
  func redirected(by plan: RedirectPlan, from method: String, status: Int)

  /// Returns the origin to which the secrets of a request belong; `nil` if they belong to the origin of the request.
  func ownerOfSecrets(in request: WireRequest) -> Origin?

  /// Whether the body for a `URLProtocol` class differs from the body of the attempt.
  var hasContentInMemory: Bool { get }

  /// Returns the body for a `URLProtocol` class, if it differs from the body of the attempt. Notes that the class may
  /// send it from now on, of which it gives no sign. May block.
  func contentInMemory() throws(AFError) -> Data?

  /// The URL of a response that is taken from a journal.
  var storedLocation: URL? { get }

  /// Returns the error of a response that the kind does not accept; `nil` if it accepts it.
  func refusal(of response: WireResponse, to url: String) -> AFError?
}

extension HopKind {
  var traits: KindTraits { [] }
  func engineURL(of url: String) -> String { url }
  func shownURL(of url: String) -> String { url }
  func callerScheme(for scheme: String) -> String { scheme }
  func handler(of request: WireRequest, in services: Services) throws(AFError) -> HopHandler? { nil }
  func redirectedURL(of url: String) -> String? { nil }
  func redirectFollowed() {}
  func redirected(by plan: RedirectPlan, from method: String, status: Int) {}
  func ownerOfSecrets(in request: WireRequest) -> Origin? { nil }
  var hasContentInMemory: Bool { false }
  func contentInMemory() throws(AFError) -> Data? { nil }
  var storedLocation: URL? { nil }
  func refusal(of response: WireResponse, to url: String) -> AFError? { nil }
}

/// The properties of a kind that the orders and the simplest stages need.
struct KindTraits: OptionSet, Sendable {
  let rawValue: UInt16

  /// The request has a body that is created for each attempt, and that a delegate can replace.
  static let hasBody = KindTraits(rawValue: 1)
  /// The request is a transfer of a background session, which waits for its turn.
  static let isScheduled = KindTraits(rawValue: 2)
  /// The conversion of the request may block.
  static let convertsInTask = KindTraits(rawValue: 4)
  /// The body of the response goes to readers, which may lag behind.
  static let hasReaders = KindTraits(rawValue: 8)
  /// The body of the response is passed on as it arrives, so only the body for the caller may be passed on. Nothing is
  /// stored in the cache or revalidated, only status 200 is served from it, and a challenge is decided by its head.
  static let passesBodyOn = KindTraits(rawValue: 16)
  /// The response is validated before the attempt has a result.
  static let validatesEarly = KindTraits(rawValue: 32)
  /// The engine serves each hop, and no `URLProtocol` class.
  static let needsEngine = KindTraits(rawValue: 64)
  /// The caller's code creates the body.
  static let makesBodyByUserCode = KindTraits(rawValue: 128)
  /// Some responses are steps that the caller does not see.
  static let takesSteps = KindTraits(rawValue: 256)
  /// The body of the response is a file, which is moved before the end of the task.
  static let hasFile = KindTraits(rawValue: 512)
}
