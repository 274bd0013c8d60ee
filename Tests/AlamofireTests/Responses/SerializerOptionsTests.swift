import Alamofire
import Foundation
import FoundationNetworking
import Testing

/// The handlers and the awaited responses of requests and downloads pass on the options of their serializers.
@Suite("Options of serializers", .timeLimit(.minutes(5))) struct SerializerOptionsTests {
  /// The options of a serializer.
  struct Options: Sendable {
    var preprocessor: (any DataPreprocessor)?
    var encoding: String.Encoding?
    var decoder: any DataDecoder = JSONDecoder()
    var codes: Set<Int> = [204, 205]
    var methods: Set<HTTPMethod> = [.head]
    var cancels = true

    var preprocessing: any DataPreprocessor { preprocessor ?? PassthroughPreprocessor() }
  }

  enum Form: CaseIterable {
    case data, text, value, file, fileText, fileValue
    case awaitedData, awaitedText, awaitedValue, awaitedFile, awaitedFileText, awaitedFileValue

    var isData: Bool { [.data, .file, .awaitedData, .awaitedFile].contains(self) }
    var isText: Bool { [.text, .fileText, .awaitedText, .awaitedFileText].contains(self) }
    var isValue: Bool { !isData && !isText }
    var isAwaited: Bool { [.awaitedData, .awaitedText, .awaitedValue].contains(self) || isAwaitedFile }
    var isAwaitedFile: Bool { [.awaitedFile, .awaitedFileText, .awaitedFileValue].contains(self) }
  }

  /// Has no content, or a number.
  struct Value: Decodable, Sendable, EmptyResponse {
    var number: Int?

    init(from decoder: any Decoder) throws { number = try decoder.singleValueContainer().decode(Int.self) }
    init() {}
    static func emptyValue() -> Value { Value() }
  }

  /// Replaces each body.
  private struct Replacement: DataPreprocessor {
    func preprocess(_ data: Data) throws -> Data { Data("7".utf8) }
  }

  /// Reads each body as the number 8.
  private struct Eight: DataDecoder {
    func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D {
      try JSONDecoder().decode(type, from: Data("8".utf8))
    }
  }

  /// Sends a request, and returns what its handler received as text; `nil` for an error.
  private func received(_ form: Form, _ options: Options, body: Data) async -> String? {
    let reply = FakeReply(chunks: body.isEmpty ? [] : [body])
    let session = Session.retained(fake: FakeTransport(reply))
    switch form {
    case .data, .text, .value, .awaitedData, .awaitedText, .awaitedValue:
      return await received(form, options, by: session.request("http://a.test/"))
    default: return await received(form, options, by: session.download("http://a.test/"))
    }
  }

  private func received(_ form: Form, _ options: Options, by request: DataRequest) async -> String? {
    let results = Recorder<String?>()
    switch form {
    case .data:
      request.responseData(
        queue: .global(), dataPreprocessor: options.preprocessing, emptyResponseCodes: options.codes,
        emptyRequestMethods: options.methods
      ) { results.add(Self.text($0.value)) }
    case .text:
      request.responseString(
        queue: .global(), dataPreprocessor: options.preprocessing, encoding: options.encoding,
        emptyResponseCodes: options.codes, emptyRequestMethods: options.methods
      ) { results.add($0.value) }
    case .value:
      request.responseDecodable(
        of: Value.self, queue: .global(), dataPreprocessor: options.preprocessing, decoder: options.decoder,
        emptyResponseCodes: options.codes, emptyRequestMethods: options.methods
      ) {
        results.add(Self.text($0.value))
      }
    case .awaitedData:
      let task = request.serializingData(
        automaticallyCancelling: options.cancels, dataPreprocessor: options.preprocessing,
        emptyResponseCodes: options.codes, emptyRequestMethods: options.methods)
      results.add(Self.text(await task.response.value))
    case .awaitedText:
      let task = request.serializingString(
        automaticallyCancelling: options.cancels, dataPreprocessor: options.preprocessing,
        encoding: options.encoding, emptyResponseCodes: options.codes, emptyRequestMethods: options.methods)
      results.add(await task.response.value)
    default:
      let task = request.serializingDecodable(
        Value.self, automaticallyCancelling: options.cancels, dataPreprocessor: options.preprocessing,
        decoder: options.decoder, emptyResponseCodes: options.codes, emptyRequestMethods: options.methods)
      results.add(Self.text(await task.response.value))
    }
    return await results.wait(for: 1).first ?? nil
  }

  private func received(_ form: Form, _ options: Options, by request: DownloadRequest) async -> String? {
    let results = Recorder<String?>()
    defer { if let file = request.fileURL { try? FileManager.default.removeItem(at: file) } }
    switch form {
    case .file:
      request.responseData(
        queue: .global(), dataPreprocessor: options.preprocessing, emptyResponseCodes: options.codes,
        emptyRequestMethods: options.methods
      ) { results.add(Self.text($0.value)) }
    case .fileText:
      request.responseString(
        queue: .global(), dataPreprocessor: options.preprocessing, encoding: options.encoding,
        emptyResponseCodes: options.codes, emptyRequestMethods: options.methods
      ) { results.add($0.value) }
    case .fileValue:
      request.responseDecodable(
        of: Value.self, queue: .global(), dataPreprocessor: options.preprocessing, decoder: options.decoder,
        emptyResponseCodes: options.codes, emptyRequestMethods: options.methods
      ) {
        results.add(Self.text($0.value))
      }
    case .awaitedFile:
      let task = request.serializingData(
        automaticallyCancelling: options.cancels, dataPreprocessor: options.preprocessing,
        emptyResponseCodes: options.codes, emptyRequestMethods: options.methods)
      results.add(Self.text(await task.response.value))
    case .awaitedFileText:
      let task = request.serializingString(
        automaticallyCancelling: options.cancels, dataPreprocessor: options.preprocessing,
        encoding: options.encoding, emptyResponseCodes: options.codes, emptyRequestMethods: options.methods)
      results.add(await task.response.value)
    default:
      let task = request.serializingDecodable(
        Value.self, automaticallyCancelling: options.cancels, dataPreprocessor: options.preprocessing,
        decoder: options.decoder, emptyResponseCodes: options.codes, emptyRequestMethods: options.methods)
      results.add(Self.text(await task.response.value))
    }
    return await results.wait(for: 1).first ?? nil
  }

  private static func text(_ data: Data?) -> String? { data.map { String(decoding: $0, as: UTF8.self) } }
  private static func text(_ value: Value?) -> String? {
    value.map { value in value.number.map { "\($0)" } ?? "" }
  }

  @Test("A preprocessor changes the body", arguments: Form.allCases)
  func preprocessor(form: Form) async {
    let options = Options(preprocessor: Replacement())
    #expect(await received(form, options, body: Data("1".utf8)) == "7")
    #expect(await received(form, Options(), body: Data("1".utf8)) == "1")
  }

  @Test("Statuses and methods allow an empty body", arguments: Form.allCases)
  func emptyBodies(form: Form) async {
    #expect(await received(form, Options(), body: Data()) == nil)
    #expect(await received(form, Options(codes: [200]), body: Data()) == "")
    #expect(await received(form, Options(methods: [.get]), body: Data()) == "")
  }

  @Test("An encoding reads the text", arguments: Form.allCases.filter(\.isText))
  func encoding(form: Form) async {
    let body = Data([0xE4])
    #expect(await received(form, Options(encoding: .windowsCP1251), body: body) == "д")
  }

  @Test("A decoder reads the value", arguments: Form.allCases.filter(\.isValue))
  func decoder(form: Form) async {
    #expect(await received(form, Options(decoder: Eight()), body: Data("1".utf8)) == "8")
  }

  @Test(
    "The end of a waiting task cancels the request only if it should",
    arguments: Form.allCases.filter(\.isAwaited), [true, false])
  func cancellation(form: Form, cancels: Bool) async {
    let (reached, gate) = (Latch(), Latch())
    let session = Session.retained(fake: FakeTransport(.text("1").held(by: gate, reached: reached)))
    let request: Request
    let task: Task<String?, Never>
    if form.isAwaitedFile {
      let download = session.download("http://a.test/")
      request = download
      task = Task { await received(form, Options(cancels: cancels), by: download) }
    } else {
      let data = session.request("http://a.test/")
      request = data
      task = Task { await received(form, Options(cancels: cancels), by: data) }
    }
    await reached.wait()
    task.cancel()
    if cancels { #expect(await eventually { request.isCancelled }) }
    gate.open()
    await request.finished()
    #expect(request.isCancelled == cancels)
    _ = await task.value
  }

  @Test("A file and a serializer of the caller can be awaited without cancelling", arguments: [true, false])
  func otherForms(cancels: Bool) async {
    for index in 0..<4 {
      let (reached, gate) = (Latch(), Latch())
      let session = Session.retained(fake: FakeTransport(.text("1").held(by: gate, reached: reached)))
      let data = session.request("http://a.test/", shouldAutomaticallyResume: index < 2)
      let download = session.download("http://a.test/", shouldAutomaticallyResume: index >= 2)
      let task = Task {
        switch index {
        case 0:
          _ = await data.serializingResponse(
            using: DataResponseSerializer(), automaticallyCancelling: cancels
          ).response
        case 1:
          _ = await data.serializingResponse(
            using: Plain(), automaticallyCancelling: cancels
          ).response
        case 2: _ = await download.serializingDownloadedFileURL(automaticallyCancelling: cancels).response
        default:
          _ = await download.serializingDownload(
            using: Plain(), automaticallyCancelling: cancels
          ).response
        }
      }
      await reached.wait()
      task.cancel()
      let request: Request = index < 2 ? data : download
      if cancels { #expect(await eventually { request.isCancelled }) }
      gate.open()
      await request.finished()
      #expect(request.isCancelled == cancels, "form \(index)")
      await task.value
      if let file = download.fileURL { try? FileManager.default.removeItem(at: file) }
    }
  }

  /// A serializer with the older protocols only.
  private struct Plain: DataResponseSerializerProtocol, DownloadResponseSerializerProtocol {
    func serialize(request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?) throws
      -> Int
    {
      if let error { throw error }
      return 1
    }

    func serializeDownload(
      request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, error: (any Error)?
    ) throws -> Int {
      if let error { throw error }
      return 2
    }
  }
}
