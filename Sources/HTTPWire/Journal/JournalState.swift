/// The progress of a transfer, by its journal.
package enum TransferProgress: Sendable, Equatable {
  /// The wait for the first bytes of a response.
  case waiting
  /// The body of a response arrives.
  case receiving
  /// The file has all its bytes.
  case completed(size: Int64)
  /// The file is being moved.
  case moving(to: String, options: Int)
  /// The file is at its destination.
  case moved(to: String)
  /// The response to an upload is stored.
  case answered(hasBody: Bool)
}

/// An unfinished transfer as its journal describes it, and the way in which a new process continues it. Pure.
package struct JournalState: Sendable, Equatable {
  /// The way in which a new process continues a transfer.
  package enum Continuation: Sendable, Equatable {
    /// Send the request, from the beginning. A resumable upload that the server has named continues at its offset.
    case send
    /// Ask for the rest of the file, after its first `received` bytes.
    case resume(received: Int64)
    /// The file or the response is complete; see ``JournalState/phase``.
    case deliver
    /// The server may have received the request, which must not be sent a second time.
    case lost
  }

  package let description: TransferDescription
  package private(set) var phase = TransferProgress.waiting
  /// The head of the last response.
  package private(set) var head: StoredHead?
  /// Whether the response handlers were called by a process that ended before they had returned.
  package private(set) var isDelivering = false
  /// The URL of the last response, if it differs from the request's URL.
  package private(set) var location: String?
  /// The resumable upload that the server has named.
  package private(set) var upload: StoredUpload?
  /// Whether the server may have received the whole request.
  package private(set) var isSent = false
  /// Whether the request has transport options that only its process knows.
  package private(set) var hasOwnOptions = false
  /// The representation of which the file has bytes, if it was noted without a head.
  package private(set) var representation: Representation?
  /// The bytes of the file that are on the disk.
  private var present = ByteRanges()
  /// The bytes that are in the file as long as the boot lasts. The file may be shorter.
  private var written = ByteRanges()
  private var boot = ""
  /// The number of bytes of the file before the last response.
  package private(set) var offset: Int64 = 0

  package init(_ description: TransferDescription) {
    self.description = description
  }

  /// Restores a transfer from its records; `nil` if the records do not begin with a description.
  package init?(_ records: [JournalRecord]) {
    guard case .described(let description)? = records.first else { return nil }
    self.init(description)
    // Inserted together at the end, because a journal may have many of them in any order.
    var noted: [Range<Int>] = []
    for record in records.dropFirst() {
      switch record {
      case .wrote(let ranges): noted += ranges.ranges
      case .responded, .identified:
        // Earlier bytes of the file belong to another response.
        noted = []
        apply(record)
      default: apply(record)
      }
    }
    written.insert(ByteRanges(noted))
  }

  package mutating func apply(_ record: JournalRecord) {
    switch record {
    // Only the first record describes the transfer.
    case .described: break
    case .responded(let head, let offset, let boot):
      // Later bytes of the file belong to another response.
      begin(present.prefix(Int(clamping: offset)), written: ByteRanges([0..<Int.max]), boot)
      self.head = head
      self.offset = max(0, offset)
    case .identified(let representation, let boot):
      begin(ByteRanges(), written: ByteRanges(), boot)
      self.representation = representation
    case .wrote(let ranges): written.insert(ranges)
    case .present(let ranges): present = ranges
    case .synced(let size): present = ByteRanges(first: size)
    case .sent: isSent = true
    case .located(let url): location = url
    case .completed(let size):
      present = ByteRanges(first: size)
      phase = .completed(size: size)
    case .moving(let path, let options): phase = .moving(to: path, options: options)
    case .moved: if case .moving(let path, _) = phase { phase = .moved(to: path) }
    case .answered(let hasBody): phase = .answered(hasBody: hasBody)
    case .restarted:
      // A file that could not be moved does not undo that its request was sent.
      let isFailedMove = if case .moving = phase { true } else { false }
      if isComplete { phase = .waiting }
      // A resumable upload continues, so that the bytes of the earlier attempts stay sent.
      if upload == nil, !isFailedMove { isSent = false }
    case .delivering: isDelivering = true
    case .uploading(let upload, let mayBeComplete):
      self.upload = upload?.resource == nil ? nil : upload
      isSent = mayBeComplete
    case .configured: hasOwnOptions = true
    }
  }

  private mutating func begin(_ present: ByteRanges, written: ByteRanges, _ boot: String) {
    (self.present, self.written, self.boot) = (present, written, boot)
    (head, representation, offset, location) = (nil, nil, 0, nil)
    phase = .receiving
  }

  /// The shortest journal of a transfer in this state.
  package var records: [JournalRecord] {
    var records = [JournalRecord.described(description)]
    if hasOwnOptions { records.append(.configured) }
    if let head { records.append(.responded(head, offset: offset, boot: boot)) }
    if let representation { records.append(.identified(representation, boot: boot)) }
    if let location { records.append(.located(url: location)) }
    switch phase {
    case .waiting where head != nil || representation != nil: records += [.completed(size: 0), .restarted]
    case .waiting, .receiving: break
    case .completed(let size): records.append(.completed(size: size))
    case .moving(let path, let options): records.append(.moving(to: path, options: options))
    case .moved(let path): records += [.moving(to: path, options: 0), .moved]
    case .answered(let hasBody): records.append(.answered(hasBody: hasBody))
    }
    records.append(.present(present))
    if head == nil, !written.ranges.isEmpty { records.append(.wrote(written)) }
    if let upload { records.append(.uploading(upload, mayBeComplete: isSent)) }
    if isSent, upload == nil { records.append(.sent) }
    if isDelivering { records.append(.delivering) }
    return records
  }

  /// Whether bytes of the file are on the disk, and so count after a restart of the machine.
  package var hasPresentBytes: Bool { !present.ranges.isEmpty }

  /// The size of the whole file, if the head states it.
  private var wholeSize: Int64? { head.flatMap { Representation.length(of: $0.head) } }

  /// Whether the file or the response is complete.
  package var isComplete: Bool {
    switch phase {
    case .completed, .moving, .moved, .answered: true
    case .waiting, .receiving: false
    }
  }

  /// Whether the request may be sent again after a failure.
  package var mayRepeat: Bool { description.isIdempotent || !isSent || upload != nil }

  /// Returns whether the server may have all bytes of a resumable upload.
  package func mayBeComplete(boot: String) -> Bool {
    // A journal of another boot may lack its last records.
    isSent || boot.isEmpty || boot != description.boot
  }

  /// Returns the bytes of the file that are known to be right.
  ///
  /// - Parameters:
  ///   - boot: The identifier of the machine's boot; empty if it is not known.
  ///   - fileSize: The size of the file.
  package func received(boot: String, fileSize: Int64) -> ByteRanges {
    guard phase == .receiving else { return ByteRanges() }
    var ranges = present
    // After a crash of the machine a file may have bytes, and a size, that never reached the disk.
    if boot == self.boot, !boot.isEmpty { ranges.insert(written) }
    return ranges.prefix(Int(clamping: fileSize))
  }

  /// Returns the number of bytes at the beginning of the file that are known to be right.
  ///
  /// - Parameter fileSize: The size of the file; `nil` if it does not exist.
  package func receivedSize(boot: String, fileSize: Int64?) -> Int64 {
    let first = fileSize.flatMap { received(boot: boot, fileSize: $0).ranges.first }
    return first.map { $0.lowerBound == 0 ? Int64($0.upperBound) : 0 } ?? 0
  }

  /// Returns the way in which a new process continues the transfer.
  ///
  /// - Parameters:
  ///   - boot: The identifier of the machine's boot.
  ///   - fileSize: The size of the downloaded file in the folder of the session; `nil` if it does not exist.
  ///   - isAtDestination: Whether there is a file at the destination.
  ///   - isReplaced: Whether something else is at the destination.
  ///   - hasResponseBody: Whether the file of the response to an upload is there.
  package func continuation(
    boot: String, fileSize: Int64?, isAtDestination: Bool, isReplaced: Bool = false,
    hasResponseBody: Bool = true
  ) -> Continuation {
    switch phase {
    case .answered(let hasBody) where hasResponseBody || !hasBody: return .deliver
    // The handlers may have taken the file away.
    case .moved where isAtDestination || isDelivering && !isReplaced: return .deliver
    case .moving where fileSize != nil || isAtDestination: return .deliver
    case .completed(let size) where fileSize == size: return .deliver
    // The process ended before it could note that the last byte had arrived.
    case .receiving where fileSize != nil && receivedSize(boot: boot, fileSize: fileSize) == wholeSize:
      return .deliver
    case .waiting, .receiving, .completed, .moving, .moved, .answered: break
    }
    guard description.isIdempotent || upload != nil || !mayBeComplete(boot: boot) else { return .lost }
    let received = receivedSize(boot: boot, fileSize: fileSize)
    return received > 0 ? .resume(received: received) : .send
  }
}
