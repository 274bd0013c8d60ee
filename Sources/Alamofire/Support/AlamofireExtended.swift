public import FoundationNetworking

/// The namespace of Alamofire's additions to a foreign type: `value.af.…` and `Type.af.…`.
///
/// Add members with a constrained extension:
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
  /// The extended value.
  public private(set) var type: ExtendedType

  /// Extends a value.
  public init(_ type: ExtendedType) {
    self.type = type
  }
}

extension AlamofireExtension: Sendable where ExtendedType: Sendable {}

/// A type with an `af` namespace; conform a type to add one.
///
/// ```swift
/// struct Temperature: AlamofireExtended {
///   var celsius: Double
/// }
/// ```
public protocol AlamofireExtended {
  /// The extended type, which is the conforming one.
  associatedtype ExtendedType
  /// The `af` namespace of the type.
  static var af: AlamofireExtension<ExtendedType>.Type { get set }
  /// The `af` namespace of a value.
  var af: AlamofireExtension<ExtendedType> { get set }
}

extension AlamofireExtended {
  /// The `af` namespace of the type. Setting it has no effect; it is settable so that mutating members can be called.
  public static var af: AlamofireExtension<Self>.Type {
    get { AlamofireExtension<Self>.self }
    set {}
  }

  /// The `af` namespace of a value. Setting it has no effect; it is settable so that mutating members can be called.
  public var af: AlamofireExtension<Self> {
    get { AlamofireExtension(self) }
    set {}
  }
}

extension URLSessionConfiguration: AlamofireExtended {}
