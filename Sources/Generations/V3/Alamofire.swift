public import Foundation

/// The namespace that code of Alamofire 3 calls by the name of the module: `Alamofire.request(.GET, ...)`.
///
/// Each function forwards to the method of ``Manager/sharedInstance``; see ``Manager``.
public enum Alamofire {
  /// Makes a request from a method, a URL, parameters and an encoding for them; see
  /// ``Manager/request(_:_:parameters:encoding:headers:)``.
  @discardableResult
  public static func request(
    _ method: Method, _ URLString: any URLStringConvertible, parameters: [String: Any]? = nil,
    encoding: ParameterEncoding = .URL, headers: [String: String]? = nil
  ) -> Request {
    Manager.sharedInstance.request(
      method, URLString, parameters: parameters, encoding: encoding, headers: headers)
  }

  /// Makes a request from a value that becomes a URL request, a router for example.
  @discardableResult
  public static func request(_ URLRequest: any URLRequestConvertible) -> Request {
    Manager.sharedInstance.request(URLRequest)
  }

  // MARK: Uploads

  /// Sends a file.
  @discardableResult
  public static func upload(
    _ method: Method, _ URLString: any URLStringConvertible, headers: [String: String]? = nil, file: URL
  ) -> Request {
    Manager.sharedInstance.upload(method, URLString, headers: headers, file: file)
  }

  /// Sends a file with your own URL request.
  @discardableResult
  public static func upload(_ URLRequest: any URLRequestConvertible, file: URL) -> Request {
    Manager.sharedInstance.upload(URLRequest, file: file)
  }

  /// Sends bytes.
  @discardableResult
  public static func upload(
    _ method: Method, _ URLString: any URLStringConvertible, headers: [String: String]? = nil, data: Data
  ) -> Request {
    Manager.sharedInstance.upload(method, URLString, headers: headers, data: data)
  }

  /// Sends bytes with your own URL request.
  @discardableResult
  public static func upload(_ URLRequest: any URLRequestConvertible, data: Data) -> Request {
    Manager.sharedInstance.upload(URLRequest, data: data)
  }

  /// Sends a stream, once.
  @discardableResult
  public static func upload(
    _ method: Method, _ URLString: any URLStringConvertible, headers: [String: String]? = nil,
    stream: InputStream
  ) -> Request {
    Manager.sharedInstance.upload(method, URLString, headers: headers, stream: stream)
  }

  /// Sends a stream, once, with your own URL request.
  @discardableResult
  public static func upload(_ URLRequest: any URLRequestConvertible, stream: InputStream) -> Request {
    Manager.sharedInstance.upload(URLRequest, stream: stream)
  }

  /// Encodes a form on a background queue, and sends it then; see
  /// ``Manager/upload(_:_:headers:multipartFormData:encodingMemoryThreshold:encodingCompletion:)``.
  public static func upload(
    _ method: Method, _ URLString: any URLStringConvertible, headers: [String: String]? = nil,
    multipartFormData: @escaping (MultipartFormData) -> Void,
    encodingMemoryThreshold: UInt64 = Manager.MultipartFormDataEncodingMemoryThreshold,
    encodingCompletion: ((Manager.MultipartFormDataEncodingResult) -> Void)?
  ) {
    Manager.sharedInstance.upload(
      method, URLString, headers: headers, multipartFormData: multipartFormData,
      encodingMemoryThreshold: encodingMemoryThreshold, encodingCompletion: encodingCompletion)
  }

  /// Encodes a form on a background queue, and sends it with a URL request whose `Content-Type` is replaced.
  public static func upload(
    _ URLRequest: any URLRequestConvertible, multipartFormData: @escaping (MultipartFormData) -> Void,
    encodingMemoryThreshold: UInt64 = Manager.MultipartFormDataEncodingMemoryThreshold,
    encodingCompletion: ((Manager.MultipartFormDataEncodingResult) -> Void)?
  ) {
    Manager.sharedInstance.upload(
      URLRequest, multipartFormData: multipartFormData, encodingMemoryThreshold: encodingMemoryThreshold,
      encodingCompletion: encodingCompletion)
  }

  // MARK: Downloads

  /// Makes a request whose response goes to the file that `destination` names.
  @discardableResult
  public static func download(
    _ method: Method, _ URLString: any URLStringConvertible, parameters: [String: Any]? = nil,
    encoding: ParameterEncoding = .URL, headers: [String: String]? = nil,
    destination: @escaping Request.DownloadFileDestination
  ) -> Request {
    Manager.sharedInstance.download(
      method, URLString, parameters: parameters, encoding: encoding, headers: headers,
      destination: destination)
  }

  /// Makes a download from a URL request.
  @discardableResult
  public static func download(
    _ URLRequest: any URLRequestConvertible, destination: @escaping Request.DownloadFileDestination
  ) -> Request {
    Manager.sharedInstance.download(URLRequest, destination: destination)
  }

  /// Resumes an interrupted download.
  @discardableResult
  public static func download(
    resumeData data: Data, destination: @escaping Request.DownloadFileDestination
  ) -> Request {
    Manager.sharedInstance.download(resumeData: data, destination: destination)
  }
}

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
