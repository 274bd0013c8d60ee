import Alamofire
import Foundation
import HTTPWire
import Testing

@Suite struct DownloadResponseTests {
  typealias Failure = DataResponseTests.Failure

  static let file = URL(fileURLWithPath: "/downloads/a file.txt")

  static func response(_ result: Result<Int, Failure>) throws -> DownloadResponse<Int, Failure> {
    DownloadResponse(
      request: try DataResponseTests.request(), origin: .exchange(DataResponseTests.exchange()),
      fileURL: file,
      resumeData: Data([1, 2, 3]), serializationDuration: 0.5, result: result)
  }

  @Test("Transformations change the result only") func transformations() throws {
    let success = try Self.response(.success(1))
    let failure = try Self.response(.failure(.first))
    let mapped = success.map { "\($0)" }
    #expect(mapped.value == "1")
    #expect(mapped.request == success.request)
    #expect(mapped.response === success.response)
    #expect(mapped.metrics === success.metrics)
    #expect(mapped.fileURL == Self.file)
    #expect(mapped.resumeData == Data([1, 2, 3]))
    #expect(mapped.serializationDuration == 0.5)
    #expect(success.tryMap { $0 + 1 }.value == 2)
    #expect(success.tryMap { _ -> Int in throw Failure.second }.error as? Failure == .second)
    #expect(failure.mapError { _ in URLError(.badURL) }.error == URLError(.badURL))
    #expect(failure.tryMapError { _ in URLError(.badURL) }.error as? URLError == URLError(.badURL))
    #expect(failure.tryMapError { _ -> URLError in throw Failure.second }.error as? Failure == .second)
  }

  @Test("Given properties are returned unchanged") func properties() throws {
    let exchange = DataResponseTests.exchange()
    let response = AFDownloadResponse<Int>(
      request: nil, response: exchange.httpResponse, fileURL: nil, resumeData: nil, metrics: exchange.metrics,
      serializationDuration: 1, result: .failure(.explicitlyCancelled))
    #expect(response.response === exchange.httpResponse)
    #expect(response.metrics === exchange.metrics)
    #expect(response.value == nil)
    #expect(response.error?.isExplicitlyCancelledError == true)
    #expect(response.description == "\(response.result)")
    #expect(response.debugDescription == "[Request]: None\n[Result]: \(response.result)")
  }

  @Test("The debug description names the file") func debugDescription() throws {
    #expect(
      try Self.response(.success(1)).debugDescription == """
        [Request]: POST http://localhost/post?q=1
            [Headers]: None
            [Body]: None
        [Response]:
            [Status Code]: 201
            [Headers]: None
        [File URL]: /downloads/a file.txt
        [Resume Data]: 3 bytes
        [Network Duration]: 0.25s
        [Serialization Duration]: 0.5s
        [Result]: success(1)
        """)
  }

  @Test("The debug description names missing parts") func missingParts() throws {
    let response = DownloadResponse<Int, Failure>(
      request: try DataResponseTests.request(), origin: .exchange(nil), fileURL: nil, result: .failure(.first)
    )
    let lines = response.debugDescription.split(separator: "\n")
    #expect(lines.contains("[Response]: None"))
    #expect(lines.contains("[File URL]: None"))
    #expect(lines.contains("[Resume Data]: None"))
    #expect(lines.contains("[Network Duration]: None"))
  }
}
