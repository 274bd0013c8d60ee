import HTTPWire
import Randomness
import Testing

/// A file with versions, its mirrors, and the bytes that were written, for random walks.
private struct Walk {
  struct Response {
    let source: Int
    var version: Int
    var offset: Int
    var end: Int
  }

  var random: SeededGenerator
  var transfer: SegmentedTransfer
  let length: Int
  let mirrors: Int
  let sendsRanges: Bool
  /// Whether the servers ignore `If-Range`, and do not send a validator in response to it.
  let ignoresConditions: Bool
  var version = 1
  var changes: Int
  var now = Duration.zero
  var wakeUps: [Duration] = []
  var requests: [Int: Int] = [:]
  var responses: [Int: Response] = [:]
  /// The version of each byte in the file; 0 is none.
  var file: [Int] = []
  var outcome: SegmentedTransfer.Action?

  init(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    length = Int.random(in: 1...400, using: &random)
    mirrors = Int.random(in: 0...2, using: &random)
    sendsRanges = Int.random(in: 0..<8, using: &random) > 0
    changes = Int.random(in: 0..<6, using: &random) == 0 ? 1 : 0
    ignoresConditions = Int.random(in: 0..<8, using: &random) == 0
    transfer = SegmentedTransfer(
      sources: 1 + mirrors, connections: Int.random(in: 1...6, using: &random),
      minimum: Int.random(in: 1...40, using: &random), hasChecksum: false)
    self.random = random
    perform(transfer.start(nil, at: now))
  }

  mutating func perform(_ actions: [SegmentedTransfer.Action]) {
    for action in actions {
      switch action {
      case .send(let request): requests[request.id] = request.source
      case .stop(let id):
        requests[id] = nil
        responses[id] = nil
      case .prepare(let version): file = Array(repeating: 0, count: version?.length ?? length)
      case .wake(let time): wakeUps.append(time)
      case .beginAgain: break
      case .finish, .fail: outcome = action
      }
    }
    checkSegments()
  }

  func checkSegments() {
    // The record of the file would describe bytes that the stream replaces.
    #expect(!transfer.isStream || transfer.plan == nil)
    guard let plan = transfer.plan else { return }
    let rests = plan.segments.values.map(\.rest).filter { !$0.isEmpty }.sorted {
      $0.lowerBound < $1.lowerBound
    }
    for (left, right) in zip(rests, rests.dropFirst()) { #expect(left.upperBound <= right.lowerBound) }
    for rest in rests { #expect(!plan.present.overlaps(rest)) }
  }

  /// Performs one random event.
  mutating func step() {
    if changes > 0, Int.random(in: 0..<40, using: &random) == 0 {
      changes -= 1
      version += 1
    }
    let waiting = requests.keys.filter { responses[$0] == nil }.sorted()
    if let id = waiting.randomElement(using: &random), Bool.random(using: &random) || responses.isEmpty {
      answer(id)
    } else if let id = responses.keys.sorted().randomElement(using: &random) {
      transferBytes(id)
    } else if let time = wakeUps.min() {
      now = max(now, time)
      wakeUps.removeAll { $0 <= now }
      perform(transfer.wake(at: now))
    }
  }

  private mutating func answer(_ id: Int) {
    guard let source = requests[id] else { return }
    if Int.random(in: 0..<12, using: &random) == 0 {
      let isRefusal = Bool.random(using: &random)
      if isRefusal {
        let isTemporary = Int.random(in: 0..<8, using: &random) > 0
        let status = isTemporary ? 503 : 403
        perform(transfer.receive(.refused(status: status, isTemporary: isTemporary), for: id, at: now))
      } else {
        requests[id] = nil
        perform(transfer.ended(id, .interrupted, at: now))
      }
      return
    }
    let tag = "\"\(version)\""
    let matches = transfer.condition(of: id).map { $0 == tag } ?? true
    respond(to: id, source, asked: transfer.range(of: id), tag: tag, matches: matches)
  }

  /// Takes the head of the response to a request for a range; `nil` for the whole file.
  private mutating func respond(to id: Int, _ source: Int, asked: Range<Int>?, tag: String, matches: Bool) {
    let isUnproven = ignoresConditions && transfer.condition(of: id) != nil
    guard let range = asked, sendsRanges, matches || isUnproven, range.lowerBound < length, !range.isEmpty
    else {
      responses[id] = Response(source: source, version: version, offset: 0, end: length)
      perform(transfer.receive(.whole(length: length, validator: tag), for: id, at: now))
      return
    }
    let part = range.clamped(to: 0..<length)
    responses[id] = Response(source: source, version: version, offset: part.lowerBound, end: part.upperBound)
    let validator = isUnproven ? nil : tag
    perform(transfer.receive(.part(part, length: length, validator: validator), for: id, at: now))
  }

  private mutating func transferBytes(_ id: Int) {
    guard let response = responses[id] else { return }
    if Int.random(in: 0..<30, using: &random) == 0 { return retry(id, response) }
    if Int.random(in: 0..<30, using: &random) == 0 || response.offset == response.end {
      let isWhole = response.offset == response.end
      requests[id] = nil
      responses[id] = nil
      perform(transfer.ended(id, isWhole ? .complete : .interrupted, at: now))
      return
    }
    transferChunk(id, response)
  }

  /// Sends a request again, as a retrier does. Its range is asked for, or its response comes, before the last bytes of
  /// the attempt that failed are written.
  private mutating func retry(_ id: Int, _ response: Response) {
    let condition = transfer.condition(of: id)
    let asked = transfer.range(of: id)
    if response.offset < response.end, Bool.random(using: &random) { transferChunk(id, response) }
    guard let late = responses.removeValue(forKey: id) else { return }
    if asked?.isEmpty == true {
      requests[id] = nil
      return perform(transfer.ended(id, .failed, at: now))
    }
    let tag = "\"\(version)\""
    respond(to: id, response.source, asked: asked, tag: tag, matches: condition.map { $0 == tag } ?? true)
    if requests[id] != nil, late.offset < late.end { transferChunk(id, late) }
  }

  private mutating func transferChunk(_ id: Int, _ old: Response) {
    var response = old
    let count = Int.random(in: 1...min(30, response.end - response.offset), using: &random)
    let room = transfer.room(for: count, in: id)
    if !room.isEmpty { #expect(room.lowerBound == response.offset) }
    for offset in room {
      #expect(file[offset] == 0, "byte \(offset) is written twice")
      file[offset] = response.version
    }
    response.offset += count
    responses[id] = response
    perform(transfer.wrote(room, excess: count - room.count, in: id, at: now))
  }
}

@Suite("Random segmented transfers") struct SegmentedTransferWalkTests {
  @Test("Each byte is written once, from one version, and the end is reached")
  func walks() {
    var finished = 0
    for seed in 1...3000 as ClosedRange<UInt64> {
      var walk = Walk(seed: seed)
      var steps = 0
      while walk.outcome == nil, steps < 20_000 {
        walk.step()
        steps += 1
      }
      switch walk.outcome {
      case .finish:
        finished += 1
        #expect(
          Set(walk.file).count == 1 && walk.file.first != 0 && walk.file.count == walk.length, "seed \(seed)")
      case .fail: #expect(walk.transfer.sources.isEmpty, "seed \(seed)")
      default: Issue.record("seed \(seed) does not end")
      }
    }
    #expect(finished > 2500)
  }
}
