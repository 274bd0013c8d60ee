import FoundationEssentials
import HTTPWire

/// A server of resumable uploads without I/O. It keeps bytes, and its responses are answers of ``UploadResumption``.
struct PureUploadServer {
  struct Upload {
    var content: [UInt8] = []
    var isComplete = false
  }

  let dialect: UploadResumption.Dialect
  let length: Int64
  var limits = UploadLimits()
  var uploads: [Upload] = []
  /// The number of uploads that were processed because all their bytes had arrived.
  var processedCount = 0
  /// The number of bytes that were accepted.
  var takenCount: Int64 = 0

  init(_ dialect: UploadResumption.Dialect, length: Int64) {
    self.dialect = dialect
    self.length = length
  }

  static func url(_ index: Int) -> String { "/files/\(index)" }

  /// Accepts a request, and breaks the connection after this many bytes of the content.
  ///
  /// - Returns: The informational answer, and the final one unless the connection broke before.
  mutating func serve(
    _ request: UploadResumption.Request, to resource: UploadResource?, content: [UInt8], cutAfter cut: Int?
  ) -> (informational: UploadAnswer?, final: UploadAnswer?) {
    let taken = Array(content.prefix(cut ?? content.count))
    switch request {
    case .discovery, .removal: return (nil, UploadAnswer(status: 204))
    case .creation(let part):
      uploads.append(Upload())
      let index = uploads.count - 1
      var named = UploadAnswer(status: 104)
      named.location = Self.url(index)
      named.interopVersion = 6
      let final = append(taken, part, to: index, isWhole: cut == nil)
      return (dialect == .draft ? named : nil, final.map { created($0, index) })
    case .offset:
      guard let index = index(of: resource) else { return (nil, UploadAnswer(status: 404)) }
      var answer = UploadAnswer(status: 204)
      answer.offset = Int64(uploads[index].content.count)
      answer.length = length
      if dialect == .draft { answer.isComplete = uploads[index].isComplete }
      return (nil, answer)
    case .append(let part):
      guard let index = index(of: resource) else { return (nil, UploadAnswer(status: 404)) }
      guard part.offset == Int64(uploads[index].content.count) else {
        return (nil, UploadAnswer(status: 409))
      }
      return (nil, append(taken, part, to: index, isWhole: cut == nil))
    }
  }

  private func index(of resource: UploadResource?) -> Int? {
    resource.flatMap { named in uploads.indices.first { named.url.hasSuffix(Self.url($0)) } }
  }

  private func created(_ answer: UploadAnswer, _ index: Int) -> UploadAnswer {
    var answer = answer
    answer.status = answer.status == 204 ? 201 : answer.status
    answer.location = Self.url(index)
    return answer
  }

  private mutating func append(
    _ bytes: [UInt8], _ part: UploadResumption.Part, to index: Int, isWhole: Bool
  ) -> UploadAnswer? {
    uploads[index].content += bytes
    takenCount += Int64(bytes.count)
    let isLast = dialect == .draft ? part.isLast : Int64(uploads[index].content.count) == length
    if Int64(bytes.count) == part.count, isLast, !uploads[index].isComplete {
      uploads[index].isComplete = true
      processedCount += 1
    }
    guard isWhole else { return nil }
    var answer = UploadAnswer(status: 204)
    answer.tusVersion = dialect == .tus ? "1.0.0" : nil
    answer.offset = Int64(uploads[index].content.count)
    answer.isComplete = dialect == .draft ? uploads[index].isComplete : nil
    return answer
  }
}

extension UploadAnswer {
  /// Reads a response that arrives in 1970, unless it has a date.
  init(_ head: ResponseHead, body: Data? = nil) {
    self.init(head, body: body, now: HTTPDate(secondsSince1970: 0))
  }
}
