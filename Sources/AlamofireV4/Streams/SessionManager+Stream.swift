import Alamofire
import Foundation

extension SessionManager {
  /// Makes a connection to a host and a port, in the clear; `startSecureConnection()` of its task begins TLS, which is
  /// judged by the manager's policies.
  ///
  /// - Parameters:
  ///   - hostName: A name or an address.
  ///   - port:     From 1 to 65,535.
  @discardableResult
  public func stream(withHostName hostName: String, port: Int) -> StreamRequest {
    StreamRequest(core.byteStream(host: hostName, port: port), RequestBridge(manager: self), of: self)
  }
}

extension Alamofire {
  /// The same by the name of the module.
  public typealias StreamRequest = AlamofireV4::StreamRequest
  /// The same by the name of the module, also in files that import FoundationNetworking themselves.
  public typealias URLSessionStreamTask = AlamofireV4::URLSessionStreamTask

  /// Makes a connection by ``SessionManager/default``; see ``SessionManager/stream(withHostName:port:)``.
  @discardableResult
  public static func stream(withHostName hostName: String, port: Int) -> StreamRequest {
    SessionManager.default.stream(withHostName: hostName, port: port)
  }
}
