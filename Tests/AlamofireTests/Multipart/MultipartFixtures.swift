import Alamofire
import Foundation

extension MultipartFormData {
  /// Returns the body as text, or `nil` if the two encoders differ. Not for forms with streams.
  func text() throws -> String? {
    let folder = try TemporaryFolder()
    let encoded = try encode()
    try writeEncodedData(to: folder["body"])
    guard try Data(contentsOf: folder["body"]) == encoded else { return nil }
    return String(decoding: encoded, as: UTF8.self)
  }
}

/// Returns the failure of an encoding; `nil` after a success.
func multipartFailure(_ body: () throws -> Void) -> AFError.MultipartEncodingFailureReason? {
  do {
    try body()
    return nil
  } catch {
    guard case .multipartEncodingFailed(let reason) = error as? AFError else { return nil }
    return reason
  }
}

extension AFError.MultipartEncodingFailureReason {
  /// The underlying error.
  var inner: (any Error)? {
    switch self {
    case .inputStreamReadFailed(let error), .outputStreamWriteFailed(let error): error
    default: nil
    }
  }

  /// The expected and the actual length.
  var lengths: [UInt64]? {
    (inner as? AFError.UnexpectedInputStreamLength).map { [$0.bytesExpected, $0.bytesRead] }
  }

  var kind: AFError.MultipartFormFailure.Kind? { (inner as? AFError.MultipartFormFailure)?.kind }
}

/// A stream whose reads return scripted results.
final class ScriptedStream: InputStream {
  private let answer: (_ room: UnsafeMutableBufferPointer<UInt8>) -> Int

  init(_ answer: @escaping (_ room: UnsafeMutableBufferPointer<UInt8>) -> Int) {
    self.answer = answer
    super.init(data: Data())
  }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    answer(UnsafeMutableBufferPointer(start: buffer, count: len))
  }

  /// Returns a stream of one byte per read.
  static func drip(_ bytes: [UInt8]) -> ScriptedStream {
    var rest = bytes[...]
    return ScriptedStream { room in
      guard let byte = rest.popFirst() else { return 0 }
      room[0] = byte
      return 1
    }
  }
}
