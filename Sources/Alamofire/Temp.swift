public import Foundation
public import FoundationNetworking
import HTTPWire
package final class Exchange: Sendable {
  struct Hop { let url: String; let metrics: TransferMetrics; let head: ResponseHead? }
  let head: ResponseHead?
  let url: String
  init(url: String, hops: [Hop]) { self.url = url; head = hops.last?.head }
  var httpResponse: HTTPURLResponse? { head.flatMap { Exchange.makeResponse(url: URL(string: url)!, head: $0) } }
  var metrics: URLSessionTaskMetrics? { nil }
  static func makeResponse(url: URL, head: ResponseHead) -> HTTPURLResponse? { HTTPURLResponse(url: url, statusCode: head.status, httpVersion: head.version.text, headerFields: HTTPHeaders(head.block.fields).dictionary) }
}
public struct URLSessionTaskMetrics: Sendable {}
public typealias AFDataResponse<S> = DataResponse<S, AFError>
public struct DataResponse<S, F: Error> { public let result: Result<S, F>; public let data: Data?
 init(request: URLRequest?, exchange: Exchange?, data: Data?, serializationDuration: Double, result: Result<S, F>) { self.result = result; self.data = data }
}
extension DataResponse: Sendable where S: Sendable, F: Sendable {}
public protocol DataPreprocessor: Sendable {}
public struct PassthroughPreprocessor: DataPreprocessor {}
public protocol DataResponseSerializerProtocol<SerializedObject>: Sendable { associatedtype SerializedObject: Sendable
 func serialize(request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: AFError?) throws -> SerializedObject }
public protocol ResponseSerializer<SerializedObject>: DataResponseSerializerProtocol {}
extension ResponseSerializer {
 public static var defaultDataPreprocessor: any DataPreprocessor { PassthroughPreprocessor() }
 public static var defaultEmptyResponseCodes: Set<Int> { [204, 205] }
 public static var defaultEmptyRequestMethods: Set<HTTPMethod> { [.head] }
}
package protocol WireSerializer: Sendable { associatedtype Value: Sendable; var runsUserCode: Bool { get }
 func serialize(method: String?, status: Int?, contentType: () -> String?, data: Data?) throws -> Value }
public final class DataResponseSerializer: ResponseSerializer, WireSerializer {
 public init(dataPreprocessor: any DataPreprocessor, emptyResponseCodes: Set<Int>, emptyRequestMethods: Set<HTTPMethod>) {}
 public func serialize(request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: AFError?) throws -> Data { data! }
 package var runsUserCode: Bool { false }
 package func serialize(method: String?, status: Int?, contentType: () -> String?, data: Data?) throws -> Data { guard let data else { throw AFError.responseSerializationFailed(reason: .inputDataNilOrZeroLength) }; return data }
}
public final class StringResponseSerializer: ResponseSerializer, WireSerializer {
 public init(dataPreprocessor: any DataPreprocessor, encoding: String.Encoding?, emptyResponseCodes: Set<Int>, emptyRequestMethods: Set<HTTPMethod>) {}
 public func serialize(request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: AFError?) throws -> String { "" }
 package var runsUserCode: Bool { false }
 package func serialize(method: String?, status: Int?, contentType: () -> String?, data: Data?) throws -> String { String(decoding: data!, as: UTF8.self) }
}
public protocol DataDecoder: Sendable { func decode<D: Decodable>(_ t: D.Type, from: Data) throws -> D }
extension JSONDecoder: DataDecoder {}
public final class DecodableResponseSerializer<T: Decodable & Sendable>: ResponseSerializer, WireSerializer {
 let d: any DataDecoder
 public init(dataPreprocessor: any DataPreprocessor, decoder: any DataDecoder, emptyResponseCodes: Set<Int>, emptyRequestMethods: Set<HTTPMethod>) {d=decoder}
 public func serialize(request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: AFError?) throws -> T { fatalError() }
 package var runsUserCode: Bool { true }
 package func serialize(method: String?, status: Int?, contentType: () -> String?, data: Data?) throws -> T { try d.decode(T.self, from: data!) }
}
enum ValidationRules {
 static func contentType(_ s: String?, accept: String?, isEmpty: Bool) -> AFError.ResponseValidationFailureReason? { nil }
 static func contentType(_ s: String?, in: [String], isEmpty: Bool) -> AFError.ResponseValidationFailureReason? { nil }
 static func statusCode<S: Sequence>(_ s: Int, in: S) -> AFError.ResponseValidationFailureReason? where S.Element == Int { nil }
}
