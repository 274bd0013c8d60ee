// Types of the core that this module hands on under names of its own: without these lines their members would be
// out of sight in a file that imports this module alone (MemberImportVisibility).
@_exported public import struct Alamofire.Certificate
@_exported public import struct Alamofire.NetworkReachabilityFlags
@_exported public import struct Alamofire.PublicKey
@_exported public import class Alamofire.ServerTrust
@_exported public import class Alamofire.TaskMetrics
@_exported public import class Alamofire.TransactionMetrics
@_exported public import struct Alamofire.TrustPolicy
@_exported public import Foundation
@_exported public import FoundationNetworking

/// What code of the fourth generation calls by the name of the module: `Alamofire.request(...)`,
/// `Alamofire.DataResponse`. Every public type of this module can be named either way.
public enum Alamofire {
  public typealias AFError = AlamofireV4::AFError
  public typealias DataResponse<Value> = AlamofireV4::DataResponse<Value>
  public typealias DataResponseSerializer<Value> = AlamofireV4::DataResponseSerializer<Value>
  public typealias DataResponseSerializerProtocol = AlamofireV4::DataResponseSerializerProtocol
  public typealias DefaultDataResponse = AlamofireV4::DefaultDataResponse
  public typealias DefaultDownloadResponse = AlamofireV4::DefaultDownloadResponse
  public typealias DownloadResponse<Value> = AlamofireV4::DownloadResponse<Value>
  public typealias DownloadResponseSerializer<Value> = AlamofireV4::DownloadResponseSerializer<Value>
  public typealias DownloadResponseSerializerProtocol = AlamofireV4::DownloadResponseSerializerProtocol
  public typealias HTTPHeaders = AlamofireV4::HTTPHeaders
  public typealias HTTPMethod = AlamofireV4::HTTPMethod
  public typealias JSONEncoding = AlamofireV4::JSONEncoding
  public typealias MultipartFormData = AlamofireV4::MultipartFormData
  public typealias NetworkReachabilityManager = AlamofireV4::NetworkReachabilityManager
  public typealias ParameterEncoding = AlamofireV4::ParameterEncoding
  public typealias Parameters = AlamofireV4::Parameters
  public typealias PropertyListEncoding = AlamofireV4::PropertyListEncoding
  public typealias Result<Value> = AlamofireV4::Result<Value>
  public typealias ServerTrustPolicy = AlamofireV4::ServerTrustPolicy
  public typealias ServerTrustPolicyManager = AlamofireV4::ServerTrustPolicyManager
  public typealias Timeline = AlamofireV4::Timeline
  public typealias URLConvertible = AlamofireV4::URLConvertible
  public typealias URLEncoding = AlamofireV4::URLEncoding
  public typealias URLRequestConvertible = AlamofireV4::URLRequestConvertible
}
