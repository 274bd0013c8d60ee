import Alamofire
public import Foundation
import FoundationNetworking

extension Manager {
  /// From how many bytes of parts on a form is sent from a file: 10 MiB.
  public static let MultipartFormDataEncodingMemoryThreshold: UInt64 = 10 * 1024 * 1024

  /// The result of encoding a form.
  public enum MultipartFormDataEncodingResult {
    /// The form is being sent: by this request, from a file or not, and from which. The file is removed when the
    /// request is over.
    case Success(request: Request, streamingFromDisk: Bool, streamFileURL: URL?)
    /// The form could not be encoded.
    case Failure(any Error)
  }

  func send(
    _ prepared: PreparedRequest, _ fill: @escaping (MultipartFormData) -> Void, _ threshold: UInt64,
    _ completion: ((MultipartFormDataEncodingResult) -> Void)?
  ) {
    let user = Boxed((fill: fill, completion: completion))
    DispatchQueue.global().async {
      let form = MultipartFormData()
      user.value.fill(form)
      let result: Boxed<MultipartFormDataEncodingResult>
      do {
        result = Boxed(try self.send(form, prepared.with(contentType: form.contentType), threshold))
      } catch {
        result = Boxed(.Failure(generationThreeError(error)))
      }
      DispatchQueue.main.async { user.value.completion?(result.value) }
    }
  }

  private func send(
    _ form: MultipartFormData, _ prepared: PreparedRequest, _ threshold: UInt64
  ) throws -> MultipartFormDataEncodingResult {
    guard form.contentLength >= threshold else {
      let request = begin(core.upload(try form.encode(), with: prepared), prepared)
      return .Success(request: request, streamingFromDisk: false, streamFileURL: nil)
    }
    let file = try FormFile("com.alamofire.manager")
    do {
      try form.writeEncodedDataToDisk(file.url)
    } catch {
      file.remove()
      throw error
    }
    let request = begin(core.upload(file.url, with: prepared), prepared)
    // The first step after the end, because the caller has no reference to the request yet.
    request.completionQueue.add { file.remove() }
    return .Success(request: request, streamingFromDisk: true, streamFileURL: file.url)
  }
}
