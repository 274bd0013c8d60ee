import Alamofire
import HTTPTestServer
import Testing

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

@Suite("JSON without a type", .timeLimit(.minutes(5))) struct UntypedJSONTests {
  @available(*, deprecated)
  @Test("A body is read as a value without a type") func data() async throws {
    let server = try HTTPTestServer()
    #expect(await args(of: AF.request(server.url("/get"), parameters: ["a": "b"])) == ["a": "b"])
    let text = await response(AF.request(server.url("/encoding/utf8")))
    #expect(text.error?.isResponseSerializationError == true)
    let isNull = await response(AF.request(server.url("/status/204"))).value is NSNull
    #expect(isNull)
  }

  @available(*, deprecated)
  @Test("The file of a download is read as a value without a type") func download() async throws {
    let server = try HTTPTestServer()
    let file = await response(AF.download(server.url("/get?a=b")))
    #expect(args(file.value) == ["a": "b"])
    let url = try #require(file.fileURL)
    try FileManager.default.removeItem(at: url)
    let empty = await response(AF.download(server.url("/status/204")))
    let isNull = empty.value is NSNull
    #expect(isNull)
    if let url = empty.fileURL { try FileManager.default.removeItem(at: url) }
  }

  @available(*, deprecated)
  @Test("The options of the caller decide about fragments", arguments: [true, false])
  func options(allowsFragments: Bool) async throws {
    let server = try HTTPTestServer()
    server.enqueue(.json("1"), .json("1"))
    let options: JSONSerialization.ReadingOptions = allowsFragments ? .allowFragments : []
    let body = await response(AF.request(server.url("/")), options)
    #expect((body.error == nil) == allowsFragments)
    let file = await response(AF.download(server.url("/")), options)
    #expect((file.error == nil) == allowsFragments)
    if let url = file.fileURL { try FileManager.default.removeItem(at: url) }
  }

  @available(*, deprecated)
  @Test("A serializer of JSON gives the value of a body") func serializer() async throws {
    let server = try HTTPTestServer()
    let request = AF.request(server.url("/get"), parameters: ["a": "b"])
    let value: Any = try await request.serializingResponse(using: JSONResponseSerializer()).value
    #expect(args(value) == ["a": "b"])
  }

  @available(*, deprecated)
  private func args(of request: DataRequest) async -> [String: String]? {
    args(await response(request).value)
  }

  @available(*, deprecated)
  private func args(_ value: Any?) -> [String: String]? {
    (value as? [String: Any])?["args"] as? [String: String]
  }

  #if swift(<6)
    private typealias JSON = Any
  #else
    private typealias JSON = any Any & Sendable
  #endif

  @available(*, deprecated)
  private func response(
    _ request: DataRequest, _ options: JSONSerialization.ReadingOptions = .allowFragments
  ) async -> AFDataResponse<JSON> {
    await withCheckedContinuation { continuation in
      request.responseJSON(queue: .global(), options: options) { continuation.resume(returning: $0) }
    }
  }

  @available(*, deprecated)
  private func response(
    _ request: DownloadRequest, _ options: JSONSerialization.ReadingOptions = .allowFragments
  ) async -> AFDownloadResponse<JSON> {
    await withCheckedContinuation { continuation in
      request.responseJSON(queue: .global(), options: options) { continuation.resume(returning: $0) }
    }
  }
}
