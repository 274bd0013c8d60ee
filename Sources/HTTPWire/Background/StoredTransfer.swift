/// A background transfer as its journal describes it, and the way in which a new process continues it. Pure.
package struct StoredTransfer: Sendable, Equatable {
  /// The progress of the transfer.
  package enum Phase: Sendable, Equatable {
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

  /// The way in which a new process continues a transfer.
  package enum Continuation: Sendable, Equatable {
    /// Send the request, from the beginning. A resumable upload that the server has named continues at its offset.
    case send
    /// Ask for the rest of the file, after its first `received` bytes.
    case resume(received: Int64)
    /// The file or the response is complete; see ``StoredTransfer/phase``.
    case deliver
    /// The server may have received the request, which must not be sent a second time.
    case lost
  }

  package let description: TransferDescription
  package private(set) var phase = Phase.waiting
  /// The head of the last response.
  package private(set) var head: StoredHead?
  /// Whether the response handlers were called by a process that ended before they had returned.
  package private(set) var isDelivering = false
  /// The URL of the last response, if it is not that of the request.
  package private(set) var location: String?
  /// The resumable upload that the server has named.
  package private(set) var upload: StoredUpload?
  /// Whether the server may have received the whole request.
  package private(set) var isSent = false
  /// The boot in which the bytes of the file were written, and the number of those that are on the disk.
  private var bodyBoot = ""
  private var syncedSize: Int64 = 0
  /// The number of bytes of the file before the last response.
  package private(set) var offset: Int64 = 0

  package init(_ description: TransferDescription) {
    self.description = description
  }

  /// Restores a transfer from its records; `nil` if the records do not begin with a description.
  package init?(_ records: [TransferRecord]) {
    guard case .described(let description)? = records.first else { return nil }
    self.init(description)
    for record in records.dropFirst() { apply(record) }
  }

  package mutating func apply(_ record: TransferRecord) {
    switch record {
    // Only the first record describes the transfer.
    case .described: break
    case .responded(let head, let offset, let boot):
      self.head = head
      // Later bytes of the file belong to another response.
      syncedSize = min(syncedSize, offset)
      self.offset = offset
      location = nil
      bodyBoot = boot
      phase = .receiving
    case .synced(let size): syncedSize = size
    case .sent: isSent = true
    case .located(let url): location = url
    case .completed(let size):
      syncedSize = size
      phase = .completed(size: size)
    case .moving(let path, let options): phase = .moving(to: path, options: options)
    case .moved: if case .moving(let path, _) = phase { phase = .moved(to: path) }
    case .answered(let hasBody): phase = .answered(hasBody: hasBody)
    case .restarted:
      if isComplete { phase = .waiting }
      // A resumable upload continues, so that the bytes of the earlier attempts stay sent.
      if upload == nil { isSent = false }
    case .delivering: isDelivering = true
    case .uploading(let upload, let mayBeComplete):
      self.upload = upload?.resource == nil ? nil : upload
      isSent = mayBeComplete
    }
  }

  /// The shortest journal of a transfer in this state.
  package var records: [TransferRecord] {
    var records = [TransferRecord.described(description)]
    if let head { records.append(.responded(head, offset: offset, boot: bodyBoot)) }
    if let location { records.append(.located(url: location)) }
    switch phase {
    case .waiting where head != nil: records += [.completed(size: syncedSize), .restarted]
    case .waiting, .receiving: break
    case .completed(let size): records.append(.completed(size: size))
    case .moving(let path, let options): records.append(.moving(to: path, options: options))
    case .moved(let path): records += [.moving(to: path, options: 0), .moved]
    case .answered(let hasBody): records.append(.answered(hasBody: hasBody))
    }
    records.append(.synced(size: syncedSize))
    if let upload { records.append(.uploading(upload, mayBeComplete: isSent)) }
    if isSent, upload == nil { records.append(.sent) }
    if isDelivering { records.append(.delivering) }
    return records
  }

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
    isSent || boot != description.boot
  }

  /// Returns the number of bytes at the beginning of the file that are known to be right.
  ///
  /// - Parameter fileSize: The size of the file; `nil` if it does not exist.
  package func receivedSize(boot: String, fileSize: Int64?) -> Int64 {
    guard phase == .receiving, let fileSize else { return 0 }
    // After a crash of the machine the size of a file may include bytes that never reached the disk.
    return boot == bodyBoot ? fileSize : min(fileSize, syncedSize)
  }

  /// Returns the way in which a new process continues the transfer.
  ///
  /// - Parameters:
  ///   - boot: The identifier of the machine's boot.
  ///   - fileSize: The size of the downloaded file in the folder of the session; `nil` if it does not exist.
  ///   - isAtDestination: Whether there is a file at the destination.
  ///   - hasResponseBody: Whether the file of the response to an upload is there.
  package func continuation(
    boot: String, fileSize: Int64?, isAtDestination: Bool, hasResponseBody: Bool = true
  ) -> Continuation {
    switch phase {
    case .answered(let hasBody) where hasResponseBody || !hasBody: return .deliver
    case .moved: return .deliver
    case .moving where fileSize != nil || isAtDestination: return .deliver
    case .completed(let size) where fileSize == size: return .deliver
    // The process ended before it could note that the last byte had arrived.
    case .receiving where fileSize != nil && receivedSize(boot: boot, fileSize: fileSize) == head?.wholeSize:
      return .deliver
    case .waiting, .receiving, .completed, .moving, .answered: break
    }
    guard description.isIdempotent || upload != nil || !mayBeComplete(boot: boot) else { return .lost }
    let received = receivedSize(boot: boot, fileSize: fileSize)
    return received > 0 ? .resume(received: received) : .send
  }
}
