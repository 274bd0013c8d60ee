import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

@Suite("The requests of a download in segments") struct SegmentRequestTests {
  private static let url = "https://a.test/file"

  private func source(_ request: URLRequest, mirrors: String...) -> SegmentedDownloadSource {
    SegmentedDownloadSource(convertible: request, mirrors: mirrors, interceptor: nil)
  }

  private func request(_ change: (inout URLRequest) -> Void = { _ in }) throws -> URLRequest {
    var request = try URLRequest(
      url: Self.url, method: .get, headers: ["Authorization": "Bearer t", "X-A": "1"])
    request.cachePolicy = .reloadIgnoringLocalCacheData
    request.timeoutInterval = 7
    request.httpShouldHandleCookies = false
    request.mainDocumentURL = URL(string: "https://document.test/")
    change(&request)
    return request
  }

  @Test("The first source is asked by the request itself") func first() throws {
    let request = try request()
    #expect(try source(request, mirrors: "https://b.test/").request(of: 0) == request)
  }

  @Test(
    "Only a mirror of the same origin gets the header of the request",
    arguments: [
      ("https://a.test/mirror", true), ("https://A.TEST:443/mirror", true), ("http://a.test/mirror", false),
      ("https://a.test:444/mirror", false), ("https://b.test/file", false),
    ])
  func mirrors(url: String, hasFirstOrigin: Bool) throws {
    let request = try request()
    let source = source(request, mirrors: "https://c.test/", url)
    let asked = try source.request(of: 2)
    #expect(asked.url?.absoluteString == url && asked.httpMethod == "GET")
    #expect(asked.headers.dictionary == (hasFirstOrigin ? request.headers.dictionary : [:]))
    #expect(asked.cachePolicy == .reloadIgnoringLocalCacheData && asked.timeoutInterval == 7)
    #expect(!asked.httpShouldHandleCookies, "the request forbids cookies, whatever source is asked")
    #expect(asked.mainDocumentURL == request.mainDocumentURL)
    #expect(
      source.hasFirstOrigin(2) == hasFirstOrigin && source.hasFirstOrigin(0) && !source.hasFirstOrigin(1))
  }

  @Test("A mirror without a valid URL fails, and has another origin") func invalidMirror() throws {
    let source = source(try request(), mirrors: "")
    #expect(throws: AFError.self) { try source.request(of: 1) }
    #expect(!source.hasFirstOrigin(1))
  }

  @Test("A request that cannot be divided is refused", arguments: ["method", "body", "stream", "range"])
  func unsuitable(kind: String) throws {
    let request = try request { request in
      switch kind {
      case "method": request.httpMethod = "POST"
      case "body": request.httpBody = Data("x".utf8)
      case "stream": request.httpBodyStream = InputStream(data: Data("x".utf8))
      default: request.headers.add(name: "range", value: "bytes=5-")
      }
    }
    for index in 0...1 {
      let error = #expect(throws: AFError.self) {
        try source(request, mirrors: "https://b.test/").request(of: index)
      }
      #expect(error?.underlyingError as? SegmentedDownload.Failure == .unsuitableRequest)
    }
  }

  @Test("A checksum has the length of its algorithm") func checksums() {
    let (short, long) = (String(repeating: "a", count: 64), String(repeating: "b", count: 128))
    #expect(FileChecksum.sha256(short).digest.map { FileChecksum($0) } == .sha256(short))
    #expect(FileChecksum.sha512(long).digest.map { FileChecksum($0) } == .sha512(long))
    #expect(FileChecksum.sha256(long).digest == nil && FileChecksum.sha512(short).digest == nil)
    #expect(FileChecksum.sha256(String(repeating: "g", count: 64)).digest == nil)
  }

  @Test(
    "Only a broken connection lets a segment continue",
    arguments: [
      (.timedOut, true), (.cannotFindHost, true), (.cannotConnectToHost, true),
      (.networkConnectionLost, true),
      (.dnsLookupFailed, true), (.notConnectedToInternet, true), (.badServerResponse, true),
      (.cannotParseResponse, true), (.secureConnectionFailed, true), (.serverCertificateUntrusted, false),
      (.cannotDecodeContentData, false), (.dataLengthExceedsMaximum, false), (.unsupportedURL, false),
    ] as [(URLError.Code, Bool)])
  func ends(code: URLError.Code, isInterruption: Bool) {
    let end = SegmentedTransfer.End(AFError.sessionTaskFailed(error: URLError(code)))
    #expect(end == (isInterruption ? .interrupted : .failed))
  }

  @Test("A segment without an error is complete, and other errors fail it") func otherEnds() {
    #expect(SegmentedTransfer.End(nil) == .complete)
    #expect(
      SegmentedTransfer.End(.responseValidationFailed(reason: .unacceptableStatusCode(code: 500))) == .failed)
  }

  @Test("The reasons for dropping a mirror are shown") func dropReasons() {
    #expect(SegmentedDownload.DroppedMirror.Reason(.differs) == .differs)
    #expect(SegmentedDownload.DroppedMirror.Reason(.hasNoRanges) == .hasNoRanges)
    #expect(SegmentedDownload.DroppedMirror.Reason(.status(404)) == .status(404))
    #expect(SegmentedDownload.DroppedMirror.Reason(.failed) == .failed)
  }
}
