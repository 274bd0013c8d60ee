/// The namespace that code of the fourth generation names like its module: `Alamofire.request(...)`,
/// `Alamofire.DataResponse`. Every public type of this module can be named either way.
public enum Alamofire {
  /// ``AlamofireV4/AFError``.
  public typealias AFError = AlamofireV4::AFError
  /// ``AlamofireV4/DataResponse``.
  public typealias DataResponse<Value> = AlamofireV4::DataResponse<Value>
  /// ``AlamofireV4/DataResponseSerializer``.
  public typealias DataResponseSerializer<Value> = AlamofireV4::DataResponseSerializer<Value>
  /// ``AlamofireV4/DataResponseSerializerProtocol``.
  public typealias DataResponseSerializerProtocol = AlamofireV4::DataResponseSerializerProtocol
  /// ``AlamofireV4/DefaultDataResponse``.
  public typealias DefaultDataResponse = AlamofireV4::DefaultDataResponse
  /// ``AlamofireV4/DefaultDownloadResponse``.
  public typealias DefaultDownloadResponse = AlamofireV4::DefaultDownloadResponse
  /// ``AlamofireV4/DownloadResponse``.
  public typealias DownloadResponse<Value> = AlamofireV4::DownloadResponse<Value>
  /// ``AlamofireV4/DownloadResponseSerializer``.
  public typealias DownloadResponseSerializer<Value> = AlamofireV4::DownloadResponseSerializer<Value>
  /// ``AlamofireV4/DownloadResponseSerializerProtocol``.
  public typealias DownloadResponseSerializerProtocol = AlamofireV4::DownloadResponseSerializerProtocol
  /// ``AlamofireV4/HTTPHeaders``.
  public typealias HTTPHeaders = AlamofireV4::HTTPHeaders
  /// ``AlamofireV4/HTTPMethod``.
  public typealias HTTPMethod = AlamofireV4::HTTPMethod
  /// ``AlamofireV4/JSONEncoding``.
  public typealias JSONEncoding = AlamofireV4::JSONEncoding
  /// ``AlamofireV4/MultipartFormData``.
  public typealias MultipartFormData = AlamofireV4::MultipartFormData
  /// ``AlamofireV4/NetworkReachabilityManager``.
  public typealias NetworkReachabilityManager = AlamofireV4::NetworkReachabilityManager
  /// ``AlamofireV4/ParameterEncoding``.
  public typealias ParameterEncoding = AlamofireV4::ParameterEncoding
  /// ``AlamofireV4/Parameters``.
  public typealias Parameters = AlamofireV4::Parameters
  /// ``AlamofireV4/PropertyListEncoding``.
  public typealias PropertyListEncoding = AlamofireV4::PropertyListEncoding
  /// ``AlamofireV4/Result``.
  public typealias Result<Value> = AlamofireV4::Result<Value>
  /// ``AlamofireV4/ServerTrustPolicy``.
  public typealias ServerTrustPolicy = AlamofireV4::ServerTrustPolicy
  /// ``AlamofireV4/ServerTrustPolicyManager``.
  public typealias ServerTrustPolicyManager = AlamofireV4::ServerTrustPolicyManager
  /// ``AlamofireV4/Timeline``.
  public typealias Timeline = AlamofireV4::Timeline
  /// ``AlamofireV4/URLConvertible``.
  public typealias URLConvertible = AlamofireV4::URLConvertible
  /// ``AlamofireV4/URLEncoding``.
  public typealias URLEncoding = AlamofireV4::URLEncoding
  /// ``AlamofireV4/URLRequestConvertible``.
  public typealias URLRequestConvertible = AlamofireV4::URLRequestConvertible
}
