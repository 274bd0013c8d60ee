import Alamofire
public import Foundation

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

// The members that code of Alamofire 4 calls by the name of the module.
extension Alamofire {
  /// ``AlamofireV4/DataRequest``.
  public typealias DataRequest = AlamofireV4::DataRequest
  /// ``AlamofireV4/DownloadRequest``.
  public typealias DownloadRequest = AlamofireV4::DownloadRequest
  /// ``AlamofireV4/Request``.
  public typealias Request = AlamofireV4::Request
  /// ``AlamofireV4/RequestAdapter``.
  public typealias RequestAdapter = AlamofireV4::RequestAdapter
  /// ``AlamofireV4/RequestRetrier``.
  public typealias RequestRetrier = AlamofireV4::RequestRetrier
  /// ``AlamofireV4/RequestRetryCompletion``.
  public typealias RequestRetryCompletion = AlamofireV4::RequestRetryCompletion
  /// ``AlamofireV4/SessionDelegate``.
  public typealias SessionDelegate = AlamofireV4::SessionDelegate
  /// ``AlamofireV4/SessionManager``.
  public typealias SessionManager = AlamofireV4::SessionManager
  /// ``AlamofireV4/TaskDelegate``.
  public typealias TaskDelegate = AlamofireV4::TaskDelegate
  /// ``AlamofireV4/UploadRequest``.
  public typealias UploadRequest = AlamofireV4::UploadRequest
}

extension Alamofire {
  /// Makes a data request by ``SessionManager/default``; see
  /// ``SessionManager/request(_:method:parameters:encoding:headers:)``.
  @discardableResult
  public static func request(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil
  ) -> DataRequest {
    SessionManager.default.request(
      url, method: method, parameters: parameters, encoding: encoding, headers: headers)
  }

  /// Makes a data request by ``SessionManager/default``; see ``SessionManager/request(_:)``.
  @discardableResult
  public static func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
    SessionManager.default.request(urlRequest)
  }

  /// Makes a download by ``SessionManager/default``; see
  /// ``SessionManager/download(_:method:parameters:encoding:headers:to:)``.
  @discardableResult
  public static func download(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    to destination: DownloadRequest.DownloadFileDestination? = nil
  ) -> DownloadRequest {
    SessionManager.default.download(
      url, method: method, parameters: parameters, encoding: encoding, headers: headers, to: destination)
  }

  /// Makes a download by ``SessionManager/default``; see ``SessionManager/download(_:to:)``.
  @discardableResult
  public static func download(
    _ urlRequest: any URLRequestConvertible, to destination: DownloadRequest.DownloadFileDestination? = nil
  ) -> DownloadRequest {
    SessionManager.default.download(urlRequest, to: destination)
  }

  /// Resumes a download by ``SessionManager/default``; see ``SessionManager/download(resumingWith:to:)``.
  @discardableResult
  public static func download(
    resumingWith resumeData: Data, to destination: DownloadRequest.DownloadFileDestination? = nil
  ) -> DownloadRequest {
    SessionManager.default.download(resumingWith: resumeData, to: destination)
  }
}

extension Alamofire {
  /// Uploads a file by ``SessionManager/default``.
  @discardableResult
  public static func upload(
    _ fileURL: URL, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
  ) -> UploadRequest {
    SessionManager.default.upload(fileURL, to: url, method: method, headers: headers)
  }

  /// Uploads a file by ``SessionManager/default``.
  @discardableResult
  public static func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    SessionManager.default.upload(fileURL, with: urlRequest)
  }

  /// Uploads bytes by ``SessionManager/default``.
  @discardableResult
  public static func upload(
    _ data: Data, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
  ) -> UploadRequest {
    SessionManager.default.upload(data, to: url, method: method, headers: headers)
  }

  /// Uploads bytes by ``SessionManager/default``.
  @discardableResult
  public static func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    SessionManager.default.upload(data, with: urlRequest)
  }

  /// Uploads the bytes of a stream by ``SessionManager/default``.
  @discardableResult
  public static func upload(
    _ stream: InputStream, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
  ) -> UploadRequest {
    SessionManager.default.upload(stream, to: url, method: method, headers: headers)
  }

  /// Uploads the bytes of a stream by ``SessionManager/default``.
  @discardableResult
  public static func upload(_ stream: InputStream, with urlRequest: any URLRequestConvertible)
    -> UploadRequest
  {
    SessionManager.default.upload(stream, with: urlRequest)
  }

  /// Encodes a form and uploads it by ``SessionManager/default``; see
  /// ``SessionManager/upload(multipartFormData:usingThreshold:to:method:headers:queue:encodingCompletion:)``.
  public static func upload(
    multipartFormData: @escaping (MultipartFormData) -> Void,
    usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
    to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    encodingCompletion: ((SessionManager.MultipartFormDataEncodingResult) -> Void)?
  ) {
    SessionManager.default.upload(
      multipartFormData: multipartFormData, usingThreshold: encodingMemoryThreshold, to: url, method: method,
      headers: headers, encodingCompletion: encodingCompletion)
  }

  /// Encodes a form and uploads it by ``SessionManager/default``; see
  /// ``SessionManager/upload(multipartFormData:usingThreshold:with:queue:encodingCompletion:)``.
  public static func upload(
    multipartFormData: @escaping (MultipartFormData) -> Void,
    usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
    with urlRequest: any URLRequestConvertible,
    encodingCompletion: ((SessionManager.MultipartFormDataEncodingResult) -> Void)?
  ) {
    SessionManager.default.upload(
      multipartFormData: multipartFormData, usingThreshold: encodingMemoryThreshold, with: urlRequest,
      encodingCompletion: encodingCompletion)
  }
}
