import Alamofire
public import Foundation

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
