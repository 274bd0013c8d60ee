import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire

extension BackgroundTransfer {
  /// The use of the transfer by its session.
  enum TransferPhase {
    case open
    /// The response handlers have returned.
    case removed
    /// The session has ended.
    case closed
  }

  /// The loss of bytes of the file that could not be flushed to the disk. Later flushes may succeed.
  enum LossState {
    case none
    /// Bytes were lost, and the file is still to be removed.
    case noted
    /// The file was removed.
    case removed
  }

  /// The steps of the transfer, its journal and its files.
  struct TransferState {
    /// `nil` until the first record is written.
    var journal: TransferJournal?
    var phase = TransferPhase.open
    /// The number of times that the request was sent again after its end.
    var run = 0
    /// The number of bytes that were on the disk, or being written to it, at the last time.
    var synchronizedSize: Int64 = 0
    var loss = LossState.none
    /// The file of the last response, which is closed at the end of the session.
    weak var file: FileSink?
    var earliestBegin: Date?
    /// The request before its adaptation; `nil` once the journal has it.
    var initialRequest: URLRequest?
    var hasTurn = false
    /// Whether the request has transport options of its own.
    var hasOwnOptions = false
    /// The number of responses whose body was begun.
    var responseCount = 0
    /// The number of the response with the first byte of the file. Later responses continued the file.
    var firstResponse = 0
    /// The body of an upload until the first record is written.
    var adoptedFile: TransferDescription.BodyFile?
    /// Whether a redirect was followed since the request was made or retried.
    var isRedirected = false
    /// Whether the journal lacks the record that the file was not moved, because it could not be written.
    var lacksRestart = false
    /// Whether the journal lacks the record that the request has transport options, because it could not be written.
    var lacksOptionsRecord = false

    /// Whether steps are recorded.
    var isOpen: Bool { phase == .open }
    /// The transfer as its journal describes it.
    var stored: JournalState? { journal?.state }
    /// Whether no byte of the file counts.
    var hasLostBytes: Bool { loss != .none }

    /// Appends a record, and before it the one about the options, if the journal lacks that. Returns the number of the
    /// error, if there is one.
    mutating func append(_ record: JournalRecord, in files: (any TransferFiles)?) -> Int32? {
      guard journal != nil else { return EINVAL }
      if lacksOptionsRecord, record != .configured {
        lacksOptionsRecord = journal?.append(.configured, in: files) != nil
      }
      return journal?.append(record, in: files)
    }

    /// Appends the record that the file was not moved, if the journal lacks it. Returns the number of the error, if
    /// there is one.
    mutating func noteMissingRestart(in files: (any TransferFiles)?) -> Int32? {
      guard lacksRestart else { return nil }
      let code = append(.restarted, in: files)
      lacksRestart = code != nil
      return code
    }

    /// Notes that the request has transport options of its own, unless the journal says so.
    mutating func noteOwnOptions(in files: (any TransferFiles)?) {
      guard isOpen, hasOwnOptions, let stored, !stored.hasOwnOptions || lacksOptionsRecord else { return }
      lacksOptionsRecord = append(.configured, in: files) != nil
    }

    /// Notes that the request is sent again, although the server may have performed it.
    mutating func noteRetry(in files: (any TransferFiles)?) {
      // Not when a request is sent, because the request after a redirect is sent as well.
      isRedirected = false
      guard isOpen, journal != nil else { return }
      // A record of its own, because a file that was not moved does not undo that the request was sent.
      _ = noteMissingRestart(in: files)
      _ = append(.restarted, in: files)
    }

    /// Notes that the server may receive the whole request from now on. Returns the number of the error if the note
    /// cannot be written for a request that must not be repeated.
    mutating func noteSent(in files: (any TransferFiles)?) -> Int32? {
      guard isOpen, let description = stored?.description else { return nil }
      guard description.isIdempotent else {
        // First, because a later restart would undo the note.
        if let code = noteMissingRestart(in: files) { return code }
        return append(.sent, in: files)
      }
      // The server might lose a resumable upload. Whether it may have had all bytes then decides.
      if description.resumption != nil { _ = append(.sent, in: files) }
      return nil
    }

    /// Notes that bytes of a response were lost, unless another one has begun the file since. Returns whether the file
    /// is still to be removed.
    ///
    /// - Parameter number: The number of the response. Default: the last one.
    @discardableResult mutating func noteLoss(ofResponse number: Int? = nil) -> Bool {
      guard isOpen, number ?? responseCount >= firstResponse else { return false }
      if loss == .none { loss = .noted }
      return loss == .noted
    }
  }
}
