// Each name in the namespace is an alias of the module's type.
extension Alamofire {
  /// `AlamofireV3.Manager`.
  public typealias Manager = AlamofireV3::Manager
  /// `AlamofireV3.Request`.
  public typealias Request = AlamofireV3::Request
  /// `AlamofireV3.Response`.
  public typealias Response = AlamofireV3::Response
  /// `AlamofireV3.Result`.
  public typealias Result = AlamofireV3::Result
  /// `AlamofireV3.ResponseSerializer`.
  public typealias ResponseSerializer = AlamofireV3::ResponseSerializer
  /// `AlamofireV3.ResponseSerializerType`.
  public typealias ResponseSerializerType = AlamofireV3::ResponseSerializerType
  /// `AlamofireV3.Timeline`.
  public typealias Timeline = AlamofireV3::Timeline
  /// `AlamofireV3.Method`.
  public typealias Method = AlamofireV3::Method
  /// `AlamofireV3.ParameterEncoding`.
  public typealias ParameterEncoding = AlamofireV3::ParameterEncoding
  /// `AlamofireV3.URLStringConvertible`.
  public typealias URLStringConvertible = AlamofireV3::URLStringConvertible
  /// `AlamofireV3.URLRequestConvertible`.
  public typealias URLRequestConvertible = AlamofireV3::URLRequestConvertible
  /// `AlamofireV3.MultipartFormData`.
  public typealias MultipartFormData = AlamofireV3::MultipartFormData
  /// `AlamofireV3.ServerTrustPolicy`.
  public typealias ServerTrustPolicy = AlamofireV3::ServerTrustPolicy
  /// `AlamofireV3.ServerTrustPolicyManager`.
  public typealias ServerTrustPolicyManager = AlamofireV3::ServerTrustPolicyManager
  /// `AlamofireV3.NetworkReachabilityManager`.
  public typealias NetworkReachabilityManager = AlamofireV3::NetworkReachabilityManager
  /// `AlamofireV3.Notifications`.
  public typealias Notifications = AlamofireV3::Notifications
  /// `AlamofireV3.TransportOptions`.
  public typealias TransportOptions = AlamofireV3::TransportOptions
}
