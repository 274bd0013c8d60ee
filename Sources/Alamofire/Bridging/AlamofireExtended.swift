public import FoundationNetworking

/// The room in which Alamofire's additions to a foreign type live, so that names do not clash:
/// `value.af.…` and `Type.af.…`.
///
/// Add to it with a constrained extension:
///
/// ```swift
/// extension AlamofireExtension where ExtendedType == URLSessionConfiguration {
///   static var patient: URLSessionConfiguration {
///     let configuration = URLSessionConfiguration.af.default
///     configuration.timeoutIntervalForRequest = 300
///     return configuration
///   }
/// }
/// ```
public struct AlamofireExtension<ExtendedType> {
  /// The value that is extended.
  public private(set) var type: ExtendedType

  /// Extends a value.
  public init(_ type: ExtendedType) {
    self.type = type
  }
}

extension AlamofireExtension: Sendable where ExtendedType: Sendable {}

/// A type that has an `af` room; conform a type to give it one.
///
/// ```swift
/// extension Decimal: @retroactive AlamofireExtended {}
/// ```
public protocol AlamofireExtended {
  /// What is extended; the conforming type.
  associatedtype ExtendedType
  /// The room of the type.
  static var af: AlamofireExtension<ExtendedType>.Type { get set }
  /// The room of a value.
  var af: AlamofireExtension<ExtendedType> { get set }
}

extension AlamofireExtended {
  /// The room of the type. Setting it does nothing; it can be set so that mutating members can be called.
  public static var af: AlamofireExtension<Self>.Type {
    get { AlamofireExtension<Self>.self }
    set {}
  }

  /// The room of a value. Setting it does nothing; it can be set so that mutating members can be called.
  public var af: AlamofireExtension<Self> {
    get { AlamofireExtension(self) }
    set {}
  }
}

extension URLSessionConfiguration: AlamofireExtended {}
