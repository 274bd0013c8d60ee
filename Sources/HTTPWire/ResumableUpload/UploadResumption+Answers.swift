// The responses to each kind of request.
extension UploadResumption {
  private static let temporaryStatuses: Set<Int> = [408, 409, 423, 425, 429]

  private static func isTemporary(_ status: Int) -> Bool {
    temporaryStatuses.contains(status) || (500..<600).contains(status)
  }

  /// The limit of the server that does not fit the upload.
  private var violatedLimit: Int64? {
    if let largest = limits.maximumSize, length > largest { return largest }
    if let smallest = limits.minimumSize, length < smallest { return smallest }
    return nil
  }

  mutating func processDiscovery(_ support: TusSupport?) -> Verdict {
    dialect = support == nil ? .draft : .tus
    if let largest = support?.maximumSize { limits.maximumSize = largest }
    return violatedLimit.map { .failure(.sizeNotAccepted(limit: $0)) } ?? .proceed
  }

  // MARK: Creation

  mutating func processCreation(_ answer: UploadAnswer, _ part: Part, at url: String) -> Verdict {
    if dialect == .tus { return processTusCreation(answer, at: url) }
    guard answer.isSuccess else { return processFailedCreation(answer, part) }
    if part.isLast, answer.isComplete != false { return .result }
    guard resource != nil || answer.hasDraftFields else { return .failure(.unsupportedByServer) }
    if resource == nil {
      guard let named = resource(named: answer, at: url) else { return .failure(.unusableUploadURL) }
      resource = named
    }
    return processAcceptance(answer, part)
  }

  private mutating func processFailedCreation(_ answer: UploadAnswer, _ part: Part) -> Verdict {
    if answer.status == 413 { return processTooLarge(answer, part) }
    // Without an upload a further request might be processed as well.
    guard resource != nil, Self.isTemporary(answer.status) else { return part.isLast ? .result : .refusal }
    return failLate(answer, part)
  }

  private mutating func processTusCreation(_ answer: UploadAnswer, at url: String) -> Verdict {
    if answer.status == 412 { return .failure(.unsupportedByServer) }
    guard answer.isSuccess else {
      return violatedLimit.map { .failure(.sizeNotAccepted(limit: $0)) } ?? .refusal
    }
    guard answer.status == 201, answer.tusVersion == TusSupport.version else {
      return .failure(.unsupportedByServer)
    }
    guard let named = resource(named: answer, at: url) else { return .failure(.unusableUploadURL) }
    resource = named
    mustAskOffset = false
    return length == 0 ? .result : .proceed
  }

  // MARK: Offset

  mutating func processOffset(_ answer: UploadAnswer) -> Verdict {
    switch answer.status {
    case 200..<300: break
    case 404, 410: return beginAgain()
    default: return Self.isTemporary(answer.status) ? failTemporarily(answer) : .refusal
    }
    if let named = answer.length, named != length { return .failure(.wrongLength(named)) }
    let isDraft = dialect == .draft
    guard let offset = answer.offset, !isDraft || answer.isComplete != nil else {
      return .failure(.wrongOffset(nil))
    }
    let isComplete = isDraft ? answer.isComplete == true : offset == length
    guard offset >= acknowledged, offset <= readEnd, !isComplete || offset == length else {
      return .failure(.wrongOffset(offset))
    }
    noteFailedPart(upTo: offset)
    acknowledged = offset
    mustAskOffset = false
    if isComplete { return processCompletion(answer) }
    mayStillStore = mayStillStore || mayBeComplete
    mayBeComplete = false
    statusAfterLastByte = nil
    return violatedLimit.map { .failure(.sizeNotAccepted(limit: $0)) } ?? .proceed
  }

  /// Processes the answer for an upload that the server has completely received, but whose last response was lost. If
  /// that response was a failure of the server, the upload has failed.
  private mutating func processCompletion(_ answer: UploadAnswer) -> Verdict {
    guard let status = statusAfterLastByte else { return .result }
    return .failure(.failedAfterUpload(status: status))
  }

  // MARK: Append

  mutating func processAppend(_ answer: UploadAnswer, _ part: Part) -> Verdict {
    switch answer.status {
    case 200..<300: return processAcceptance(answer, part)
    case 404, 410: return beginAgain()
    case 413: return processTooLarge(answer, part)
    case 412 where dialect == .tus: return .failure(.unsupportedByServer)
    case 400 where answer.problem == .completedUpload: return failTemporarily(answer)
    case 400 where answer.problem == .inconsistentLength:
      return .failure(.wrongLength(answer.length ?? length))
    default: break
    }
    if Self.isTemporary(answer.status) { return failLate(answer, part) }
    // The response to the last bytes may come from the application.
    return part.isLast && dialect == .draft ? .result : .refusal
  }

  /// Processes the answer of a server that has accepted a part.
  private mutating func processAcceptance(_ answer: UploadAnswer, _ part: Part) -> Verdict {
    unconfirmed = nil
    if dialect == .tus {
      guard let offset = answer.offset, offset >= part.offset, offset <= part.end else {
        return .failure(.wrongOffset(answer.offset))
      }
      return accepted(part, upTo: offset, isComplete: offset == length, answer)
    }
    if part.isLast, answer.isComplete != false { return .result }
    // A contradiction, which the offset resolves: the last bytes are not the end, or earlier ones are.
    if part.isLast || answer.isComplete == true {
      noteAcceptance(upTo: answer.offset ?? part.offset, part)
      return failTemporarily(answer)
    }
    let offset = answer.offset ?? part.end
    guard offset >= part.offset, offset <= part.end else { return .failure(.wrongOffset(offset)) }
    return accepted(part, upTo: offset, isComplete: false, answer)
  }

  private mutating func accepted(
    _ part: Part, upTo offset: Int64, isComplete: Bool, _ answer: UploadAnswer
  ) -> Verdict {
    noteAcceptance(upTo: offset, part)
    let hasProgress = (offset > acknowledged && !isSlow) || part.count == 0
    acknowledged = max(acknowledged, offset)
    if isComplete { return .result }
    if let limit = violatedLimit { return .failure(.sizeNotAccepted(limit: limit)) }
    mustAskOffset = false
    return hasProgress ? .proceed : failTemporarily(answer)
  }

  /// The size of a part below which the number of bytes that a server takes does not reduce it.
  private static var smallestReducedPart: Int64 { 1 << 16 }

  /// The size of a part below which the bytes that were taken of failed parts do not reduce it.
  private static var smallestPartAfterFailures: Int64 { 1 << 20 }

  /// Counts the parts of which a server takes little. It may store small parts only, so such ones are sent then.
  private mutating func noteAcceptance(upTo offset: Int64, _ part: Part) {
    let taken = min(max(0, offset - part.offset), part.count)
    // A server that limits parts to a byte would get as many requests as the upload has bytes.
    let sensible = min((length - part.offset) / 1000, policy.largestPart ?? .max, 1024)
    guard part.count > 0, taken < max(part.count, sensible) / 2 else {
      shortAcceptanceCount = 0
      return
    }
    noteShortPart(taken, Self.smallestReducedPart)
  }

  /// Counts a part that failed after the server had taken little of it. If this went on, the rest would be sent as
  /// often as the upload has bytes. A connection that breaks has bytes in its buffers, which are read but not taken.
  private mutating func noteFailedPart(upTo offset: Int64) {
    guard let part = unconfirmed else { return }
    unconfirmed = nil
    let taken = min(offset - part.offset, part.count)
    guard taken > 0 else { return }
    if taken < (unconfirmedEnd - part.offset) / 16 {
      noteShortPart(taken, Self.smallestPartAfterFailures)
    } else if taken >= min(part.count / 2, Self.smallestReducedPart) {
      shortAcceptanceCount = 0
    }
  }

  private mutating func noteShortPart(_ taken: Int64, _ smallest: Int64) {
    shortAcceptanceCount += 1
    guard shortAcceptanceCount == Self.shortAcceptanceLimit else { return }
    partLimit = min(partLimit ?? .max, max(taken, smallest))
  }

  /// The number of times in a row that a refused part may be sent in one of more than half its size.
  private static var slightReductionLimit: Int { 5 }
  /// The number of times that a server may refuse a part as too large.
  private static var refusedPartLimit: Int { 64 }

  /// Processes the answer that a part, or the whole upload, is too large.
  private mutating func processTooLarge(_ answer: UploadAnswer, _ part: Part) -> Verdict {
    if let limit = violatedLimit { return .failure(.sizeNotAccepted(limit: limit)) }
    guard let largest = limits.maximumAppendSize, largest > 0, largest < part.count else {
      return part.isLast ? .result : .refusal
    }
    refusedPartCount += 1
    guard refusedPartCount <= Self.refusedPartLimit else { return .refusal }
    // Otherwise a server could refuse a part as often as it has bytes.
    if largest > part.count / 2 {
      if acknowledged > acknowledgedAtReduction { slightReductionCount = 0 }
      acknowledgedAtReduction = acknowledged
      slightReductionCount += 1
      guard slightReductionCount <= Self.slightReductionLimit else { return .refusal }
    }
    partLimit = largest
    unconfirmed = nil
    mustAskOffset = resource != nil
    // The request was refused, and therefore not processed.
    mayBeComplete = false
    return .proceed
  }

  /// Notes a failure of the server after it may have received the last byte.
  private mutating func failLate(_ answer: UploadAnswer, _ part: Part) -> Verdict {
    if part.isLast, mayBeComplete, mayConcernWholeUpload(answer) { statusAfterLastByte = answer.status }
    return failTemporarily(answer)
  }

  /// Whether a temporary failure may be the answer of the application to all bytes, and not one of the protocol.
  private func mayConcernWholeUpload(_ answer: UploadAnswer) -> Bool {
    switch answer.status {
    // A gateway answers with these if it lost the request, or the response of the server.
    case 408, 502, 504: false
    case 409:
      dialect == .draft && !mayStillStore && answer.offset == nil && answer.problem != .mismatchingOffset
    // In tus, the statuses 409 and 423 concern the offset and the lock of the upload. An earlier request may have them,
    // too.
    case 423, 425: dialect == .draft && !mayStillStore
    case 429: dialect == .draft
    default: (500..<600).contains(answer.status)
    }
  }
}
