import Alamofire
import AlamofireImage
import Foundation
import Glibc

/// A download in segments, or one whose checksum is verified. A later run with the same file continues it.
struct SegmentedExchange {
  let environment: Environment
  let invocation: Invocation
  let request: URLRequest
  var archive: ArchiveFile?

  func run(_ kept: KeptState, _ output: Invocation.Output) async throws(UsageError) -> ExitCode {
    let session = try Session(
      invocation, cookies: kept.cookies, archive: archive, askPassphrase: environment.askPassphrase)
    let path = try path(output)
    if output == .suggestedName, FileManager.default.fileExists(atPath: path) {
      throw UsageError("'\(path)' is in the way of the download; move it, or name a file with --output.")
    }
    try Self.checkWritable(path)
    let download = session.segmentedDownload(
      request, segments: invocation.segments ?? 1, checksum: invocation.checksum,
      to: URL(fileURLWithPath: path), options: [.removePreviousFile, .keepsPermissions])
    if invocation.authentication == .digest, let credentials = invocation.credentials {
      download.authenticate(username: credentials.user, password: credentials.password ?? "")
    }
    let meter = ProgressMeter(environment, invocation)
    // Separate queues, because the main queue waits for the response.
    if let meter {
      download.downloadProgress(queue: DispatchQueue(label: "af.progress")) { progress in
        meter.received(completed: progress.completedBytes, total: progress.totalBytes ?? -1)
      }
    }
    let queue = DispatchQueue(label: "af.segments")
    environment.interruption.onSignal { download.cancel() }
    let response = await withCheckedContinuation { continuation in
      download.response(queue: queue) { continuation.resume(returning: $0) }
    }
    meter?.finish()
    if response.response != nil { kept.store(from: session, invocation) }
    return finish(response, path: path, output, partialPath: download.partialFileURL.path)
  }

  /// Throws if a file is there that must not be written, and so must not be replaced.
  private static func checkWritable(_ path: String) throws(UsageError) {
    var information = stat()
    guard stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG, access(path, W_OK) != 0
    else { return }
    throw UsageError(SavedFile.Failure(path).sentence)
  }

  /// Returns the path of the download. The name that the server suggests is known with the response, and then belongs
  /// to a new file. Until then the name comes from the URL, so that a later run finds the partial file.
  private func path(_ output: Invocation.Output) throws(UsageError) -> String {
    switch output {
    case .file(let path): try Self.destination(path)
    case .suggestedName:
      "\(environment.folder)/\(SavedFile.safe(request.url?.lastPathComponent ?? ""))\(FileNames.unnamedEnding)"
    }
  }

  /// Returns where the links of a path lead, because a file replaces a link. Throws if something is there that a file
  /// must not replace; the library reports a folder.
  private static func destination(_ path: String) throws(UsageError) -> String {
    var information = stat()
    if stat(path, &information) == 0, ![S_IFREG, S_IFDIR].contains(information.st_mode & S_IFMT) {
      throw UsageError(
        "'\(path)' is no regular file, and --segments and --checksum would replace it; name another one.")
    }
    try LocalFile.checkLink(path)
    return PrivateFile.destination(of: path)
  }

  private func finish(
    _ response: SegmentedDownload.Response, path: String, _ output: Invocation.Output, partialPath: String
  ) -> ExitCode {
    if let error = response.error { return fail(error, response, partialPath: partialPath) }
    do throws(SavedFile.Failure) {
      let saved = try name(path, output, response.response)
      ResponsePrinter(environment: environment, invocation: invocation).reportSaved(saved, isComplete: true)
      return .success
    } catch {
      Command.complain(error.sentence, in: environment)
      return .failure
    }
  }

  /// Gives the complete file the name that the server suggests. Returns the name.
  private func name(
    _ path: String, _ output: Invocation.Output, _ response: HTTPURLResponse?
  ) throws(SavedFile.Failure) -> String {
    if case .file(let path) = output { return path }
    let file = try SavedFile(suggestedName: response?.suggestedFilename, folder: environment.folder)
    try file.replace(with: path)
    return file.path
  }

  private func fail(
    _ error: AFError, _ response: SegmentedDownload.Response, partialPath: String
  ) -> ExitCode {
    if environment.interruption.signal == nil { Command.complain(text(error), in: environment) }
    if FileManager.default.fileExists(atPath: partialPath) {
      environment.writeError(
        "The received part is in \(ReadableText.line(partialPath)); the same command gets the rest.\n")
    }
    guard invocation.checksStatus, let code = response.response?.statusCode else { return .failure }
    let status = ExitCode(statusCode: code)
    return status == .success ? .failure : status
  }

  private func text(_ error: AFError) -> String {
    if case .checksumMismatch(let expected, let actual) = error.underlyingError as? SegmentedDownload.Failure
    {
      // A server can name a digest of its file, too.
      let source =
        expected == invocation.checksum ? "checksum of --checksum" : "digest that the server has sent"
      return "The file does not have the \(source), but \(actual). It was removed."
    }
    return FailureMessage.text(error, isVerbose: false)
  }
}

/// A request for an image: writes facts about it, or a file with it in another size. Nothing else needs libvips.
struct ImageExchange {
  let environment: Environment
  let invocation: Invocation
  let outgoing: OutgoingRequest
  var archive: ArchiveFile?

  func run(_ kept: KeptState) async throws(UsageError) -> ExitCode {
    let session = try Session(
      invocation, cookies: kept.cookies, archive: archive, askPassphrase: environment.askPassphrase)
    let sending = outgoing.sent(outgoing.request, in: session, invocation)
    let meter = ProgressMeter(environment, invocation)
    meter?.follow(sending)
    environment.interruption.onSignal { sending.cancel() }
    let response = await withCheckedContinuation { continuation in
      // Any queue but the main one, which waits for the response.
      sending.response(queue: .global()) { continuation.resume(returning: $0) }
    }
    meter?.finish()
    if response.response != nil { kept.store(from: session, invocation) }
    return await finish(response)
  }

  private func finish(_ response: AFDataResponse<Data?>) async -> ExitCode {
    if environment.interruption.signal != nil { return .failure }
    if let error = response.error {
      Command.complain(FailureMessage.text(error, isVerbose: false), in: environment)
      return .failure
    }
    // The body of a failure is not an image, or not the one that was asked for.
    if let code = response.response?.statusCode, !(200..<300).contains(code) {
      Command.complain(ReasonPhrase.sentence(code), in: environment)
      let status = ExitCode(statusCode: code)
      return invocation.checksStatus && status != .success ? status : .failure
    }
    do {
      let body = response.data ?? Data()
      let image = try Image(data: body)
      if case .file(let path) = invocation.output {
        try await write(image, to: path)
      } else {
        try describe(image, bytes: body.count)
      }
      return .success
    } catch {
      return fail(error)
    }
  }

  private func fail(_ error: any Error) -> ExitCode {
    let text = (error as? SavedFile.Failure)?.sentence ?? error.localizedDescription
    // The command has no limits of its own.
    Command.complain(
      text.replacingOccurrences(of: " To accept it, pass larger ImageLimits.", with: ""), in: environment)
    return .failure
  }

  /// Writes a line for each fact. The average colour shows that the image can be decoded.
  private func describe(_ image: Image, bytes: Int) throws {
    let color = try image.averageColor()
    var facts = [
      ("format", image.format?.rawValue ?? "unknown"),
      ("width", "\(image.pixelWidth)"), ("height", "\(image.pixelHeight)"), ("bytes", "\(bytes)"),
      ("alpha", image.af.containsAlphaComponent ? "yes" : "no"), ("average", color.hex),
    ]
    if image.frameCount > 1 {
      let duration = image.frameDurations.reduce(Duration.zero, +) / .milliseconds(1)
      facts += [
        ("frames", "\(image.frameCount)"), ("duration", Milliseconds.text(duration)),
        ("loops", image.loopCount == 0 ? "endless" : "\(image.loopCount)"),
      ]
    }
    let palette = environment.palette(of: invocation)
    let lines = facts.map { palette.paint($0.0, .name) + ": \($0.1)\n" }
    _ = environment.writeOutput(Data(lines.joined().utf8))
  }

  private func write(_ image: Image, to path: String) async throws {
    guard let size = invocation.imageSize, let format = Self.format(ofFile: path) else { return }
    let variant =
      switch size {
      case .longestSide(let side): ImageVariants.Variant("image", longestSide: side)
      case .filling(let width, let height): ImageVariants.Variant("image", width: width, height: height)
      }
    guard let file = try await ImageVariants(variant).files(of: image, as: format)["image"] else { return }
    do throws(PrivateFile.Failure) {
      try PrivateFile.write(file, to: path, mode: 0o666, keepsMode: true)
    } catch {
      throw SavedFile.Failure(path, code: error.code)
    }
    ResponsePrinter(environment: environment, invocation: invocation).reportSaved(path, isComplete: true)
  }

  /// Returns the format that the name of a file ends with.
  static func format(ofFile path: String) -> ImageFormat? {
    let name = path.lowercased()
    guard let dot = name.lastIndex(of: "."), !name[dot...].contains("/") else { return nil }
    let ending = name[name.index(after: dot)...]
    return switch ending {
    case "jpg": .jpeg
    case "tif": .tiff
    case "heif": .heic
    default: ImageFormat(rawValue: String(ending))
    }
  }
}
