import HTTPWire
import Testing

@Suite("Cacheable responses")
struct StorageRulesTests {
  struct Row: CustomTestStringConvertible {
    var method = "GET"
    var status = 200
    var requestFields: [(String, String)] = []
    var answered: [(String, String)] = []
    let isStored: Bool
    var testDescription: String { "\(method) \(status) \(requestFields) \(answered)" }
  }

  private static func names(_ count: Int) -> String { (0..<count).map { "x-\($0)" }.joined(separator: ",") }

  static let rows = [
    Row(isStored: true),
    Row(status: 404, isStored: true),
    Row(status: 302, isStored: false),
    Row(status: 302, answered: [("Cache-Control", "max-age=60")], isStored: true),
    Row(status: 500, answered: [("Expires", "Thu, 01 Jan 2099 00:00:00 GMT")], isStored: true),
    Row(status: 500, isStored: false),
    Row(status: 206, isStored: false),
    Row(status: 304, isStored: false),
    Row(method: "POST", answered: [("Cache-Control", "max-age=60")], isStored: false),
    Row(method: "HEAD", isStored: false),
    Row(answered: [("Cache-Control", "no-store")], isStored: false),
    Row(answered: [("cache-control", "public , NO-STORE")], isStored: false),
    Row(answered: [("Cache-Control", "private")], isStored: true),
    Row(answered: [("Cache-Control", "no-cache=\"a\"")], isStored: true),
    Row(answered: [("Vary", "*")], isStored: false),
    Row(answered: [("Vary", "Accept")], isStored: true),
    Row(answered: [("Vary", names(64))], isStored: true),
    Row(answered: [("Vary", names(65))], isStored: false),
    Row(requestFields: [("Cache-Control", "no-store")], isStored: false),
    Row(requestFields: [("Range", "bytes=0-1")], isStored: false),
    Row(requestFields: [("Authorization", "Bearer t")], isStored: true),
  ]

  @Test("Each row of the table has its decision", arguments: rows) func decision(row: Row) {
    let fields = row.requestFields.map { HTTPHeader(name: $0.0, value: $0.1) }
    let head = ResponseHead(
      status: row.status, fields: row.answered.map { HTTPHeader(name: $0.0, value: $0.1) })
    #expect(StorageRules.mayStore(method: row.method, fields: fields, head: head) == row.isStored)
  }
}
