import Foundation
import HTTPWire
import Testing

@testable import Alamofire

/// The counts of a request, and the calls of its handlers.
@Suite("Reports of progress") struct ProgressReportTests {
  private static let handler: ProgressReport.Handler = (.global(), { _ in })

  private func count(
    _ sent: Int64, of expectedToSend: Int64, _ received: Int64, of expectedToReceive: Int64
  ) -> ByteCount {
    var count = ByteCount()
    (count.sent, count.expectedToSend) = (sent, expectedToSend)
    (count.received, count.expectedToReceive) = (received, expectedToReceive)
    return count
  }

  /// Changes the objects, and describes the calls: whether they concern a handler, the number of sequences, and the
  /// counts.
  private func texts(_ notices: [ProgressReport.Notice]) -> [String] {
    notices.compactMap { notice in
      let progress = notice.change.applied()
      if notice.handler == nil, notice.streams.isEmpty { return nil }
      let receiver = notice.handler == nil ? "\(notice.streams.count) sequences" : "handler"
      return "\(receiver) \(progress.completedUnitCount)/\(progress.totalUnitCount)"
    }
  }

  private var observed: ProgressReport {
    var report = ProgressReport()
    report.uploadHandler = Self.handler
    report.downloadHandler = Self.handler
    return report
  }

  @Test("Handlers are called for bytes that have moved, and at the end only if they missed the last ones")
  func moves() {
    var report = observed
    let steps: [(ByteCount, [String])] = [
      (count(0, of: 10, 0, of: -1), []), (count(4, of: 10, 0, of: -1), ["handler 4/10"]),
      (count(4, of: 10, 0, of: -1), []),
      (count(10, of: 10, 3, of: 8), ["handler 10/10", "handler 3/8"]),
      (count(10, of: 10, 8, of: 8), ["handler 8/8"]),
    ]
    for (count, expected) in steps {
      let notices = report.moved(count, nil)
      #expect(texts(notices) == expected && report.count == count)
    }
    let nothing = report.completed()
    #expect(texts(nothing) == [])
    report.downloadHandler = Self.handler
    let download = report.completed()
    #expect(texts(download) == ["handler 8/8"], "another handler was not called yet")
    report.uploadHandler = Self.handler
    let upload = report.completed()
    #expect(texts(upload) == ["handler 10/10"])
    let again = report.completed()
    #expect(texts(again) == [])
  }

  @Test("The length of a body is known before its bytes move") func lengths() {
    var report = observed
    let beginning = report.moved(count(0, of: 10, 0, of: -1), nil)
    #expect(texts(beginning) == [])
    let upload = report.uploadProgress().applied()
    #expect(upload.totalUnitCount == 10 && upload.completedUnitCount == 0)
    let longer = report.moved(count(0, of: 20, 0, of: -1), nil)
    #expect(texts(longer) == [])
    #expect(upload.totalUnitCount == 20)
  }

  @Test("Counts that come late do not set an object back") func order() {
    var report = observed
    let upload = report.uploadProgress().applied()
    let first = report.moved(count(4, of: 10, 2, of: 8), nil)
    let download = report.downloadProgress()
    let second = report.moved(count(10, of: 10, 8, of: 8), nil)
    #expect(texts(second) == ["handler 10/10", "handler 8/8"])
    #expect(
      texts(first) == ["handler 10/10", "handler 8/8"], "the objects have the counts of the second change")
    #expect(download.applied().completedUnitCount == 8 && upload.completedUnitCount == 10)
  }

  @Test("Without an object that a caller has, and without receivers, nothing is changed") func unobserved() {
    var report = ProgressReport()
    let notices = report.moved(count(4, of: 10, 2, of: 8), RequestListeners())
    #expect(notices.isEmpty && report.count == count(4, of: 10, 2, of: 8))
    let atEnd = report.completed()
    #expect(atEnd.isEmpty)
    let download = report.downloadProgress().applied()
    #expect(download.completedUnitCount == 2 && download.totalUnitCount == 8)
    let next = report.moved(count(10, of: 10, 3, of: 8), nil)
    #expect(next.count == 1, "only the download has an object")
    #expect(texts(next) == [] && download.completedUnitCount == 3)
  }

  @Test("The bytes of a redirect do not count, nor those that came before it") func intermediate() {
    var report = observed
    report.isIntermediate = true
    let redirect = report.moved(count(2, of: 2, 5, of: 5), nil)
    #expect(texts(redirect) == ["handler 2/2"] && report.count == count(2, of: 2, 0, of: 5))
    report.isIntermediate = false
    let response = report.moved(count(2, of: 2, 5, of: 5), nil)
    #expect(texts(response) == ["handler 5/5"])
    report.isIntermediate = true
    report.downloadHandler = Self.handler
    let end = report.completed()
    #expect(texts(end) == [])
  }

  @Test("A request without a body that follows a redirect does not change what was sent")
  func bodilessRequest() {
    var report = observed
    let body = report.moved(count(4, of: 4, 0, of: -1), nil)
    #expect(texts(body) == ["handler 4/4"])
    let page = report.moved(count(0, of: 0, 5, of: 5), nil)
    #expect(texts(page) == ["handler 5/5"] && report.count == count(4, of: 4, 5, of: 5))
    let repeated = report.moved(count(0, of: 4, 5, of: 5), nil)
    #expect(texts(repeated).isEmpty && report.count.sent == 0, "a body that is sent again counts anew")
  }

  @Test("Sequences receive what handlers receive") func sequences() {
    var (report, listeners) = (ProgressReport(), RequestListeners())
    let (uploads, downloads) = (AsyncStream<Progress>.makeStream(), AsyncStream<Progress>.makeStream())
    listeners.uploads = [uploads.continuation]
    listeners.downloads = [downloads.continuation, downloads.continuation]
    let first = report.moved(count(0, of: 4, 1, of: 3), listeners)
    #expect(texts(first) == ["2 sequences 1/3"])
    let second = report.moved(count(4, of: 4, 1, of: 3), listeners)
    #expect(texts(second) == ["1 sequences 4/4"])
  }

  @Test("Another attempt has its own objects and counts, and calls the handlers again") func reset() {
    var report = observed
    _ = report.moved(count(4, of: 4, 8, of: 8), nil)
    let (upload, download) = (report.uploadProgress().applied(), report.downloadProgress().applied())
    report.isIntermediate = true
    report.reset()
    #expect(report.count == ByteCount() && !report.isIntermediate)
    let (newUpload, newDownload) = (report.uploadProgress().applied(), report.downloadProgress().applied())
    #expect(newUpload !== upload && newDownload !== download)
    #expect(newUpload.completedUnitCount == 0 && newDownload.completedUnitCount == 0)
    let notices = report.moved(count(4, of: 4, 8, of: 8), nil)
    #expect(texts(notices) == ["handler 4/4", "handler 8/8"])
    #expect(upload.completedUnitCount == 4 && download.completedUnitCount == 8, "the old ones stay")
  }

  private func exchange(_ fields: [(String, String)], sent: Int64 = 6) -> Exchange {
    var values = TransferMetrics.Values()
    values.requestBodyBytes = sent
    let hop = Exchange.Hop(url: "http://a.test/", metrics: TransferMetrics(values: values))
    let head = ResponseHead(status: 200, fields: fields.map { HTTPHeader(name: $0.0, value: $0.1) })
    return Exchange(url: nil, head: head, hops: [hop])
  }

  @Test("Progress that was not observed is taken from the response") func ended() {
    for (fields, uploaded, offset, expected) in [
      ([("Content-Length", "7")], nil, 0, count(6, of: 6, 7, of: 7)),
      ([("Content-Length", "7")], 20, 3, count(20, of: 20, 10, of: 10)),
      ([("Content-Length", "7"), ("Content-Encoding", "gzip")], nil, 0, count(6, of: 6, 7, of: -1)),
      ([], nil, 3, count(6, of: 6, 10, of: -1)),
      ([("Content-Length", "\(Int64.max)")], nil, 3, count(6, of: 6, 10, of: -1)),
    ] as [([(String, String)], Int64?, Int64, ByteCount)] {
      var report = ProgressReport()
      report.ended(exchange(fields), uploaded: uploaded, received: 7, after: offset)
      #expect(report.count == expected, "\(fields)")
      let (upload, download) = (report.uploadProgress().applied(), report.downloadProgress().applied())
      #expect(upload.completedUnitCount == expected.sent && upload.totalUnitCount == expected.expectedToSend)
      #expect(download.completedUnitCount == expected.received)
      #expect(download.totalUnitCount == expected.expectedToReceive)
      report.ended(exchange([], sent: 99), uploaded: 99, received: 99, after: 99)
      #expect(report.count == expected, "it is known already")
    }
  }
}
