public import Alamofire
import Foundation
import FoundationNetworking

/// The task of a stream. Foundation's own class of this name can do nothing on Linux.
public typealias URLSessionStreamTask = Alamofire::ByteStreamTask

extension Manager {
  /// Makes a two-way connection to a host and a port, without TLS.
  ///
  /// Its task performs the operations in the order of the calls, and calls handlers on a queue of the manager. Its
  /// `startSecureConnection()` begins TLS; the manager's policies evaluate the server.
  ///
  /// ```swift
  /// let stream = manager.stream(hostName: "mail.example.com", port: 25)
  /// if let task = stream.task as? URLSessionStreamTask {
  ///   task.readData(ofMinLength: 1, maxLength: 512, timeout: 10) { data, isAtEnd, error in
  ///     if let data { print(String(decoding: data, as: UTF8.self)) }
  ///   }
  ///   task.write(Data("QUIT\r\n".utf8), timeout: 10) { error in task.closeWrite() }
  /// }
  /// ```
  ///
  /// The stream ends when both sides are closed, when it fails or is cancelled, and with its manager. Handlers of the
  /// request then get the error, if there is one, and no value; validators are not called.
  ///
  /// The method with an `NSNetService` is missing, because Linux has no such services. So are `captureStreams()` and
  /// `stopSecureConnection()` of the tasks.
  ///
  /// - Parameters:
  ///   - hostName: A name or an address. An invalid one is an error in the handlers.
  ///   - port: From 1 to 65,535.
  @discardableResult
  public func stream(hostName: String, port: Int) -> Request {
    let request = Request(core.byteStream(host: hostName, port: port), session)
    if startRequestsImmediately { request.resume() }
    return request
  }
}

extension Alamofire {
  /// `AlamofireV3.URLSessionStreamTask`, also in files that import FoundationNetworking themselves.
  public typealias URLSessionStreamTask = AlamofireV3::URLSessionStreamTask

  /// Makes a connection to a host and a port; see ``Manager/stream(hostName:port:)``.
  @discardableResult
  public static func stream(hostName: String, port: Int) -> Request {
    Manager.sharedInstance.stream(hostName: hostName, port: port)
  }
}
