import Alamofire
import Foundation

/// A source of server-sent events: the data of each event is written as it comes. A connection that ends is made again
/// if the method is safe.
struct EventExchange {
  let environment: Environment
  let invocation: Invocation
  let request: URLRequest
  var archive: ArchiveFile?

  func run(_ kept: KeptState) async throws(UsageError) -> ExitCode {
    let session = try Session(
      invocation, cookies: kept.cookies, archive: archive, askPassphrase: environment.askPassphrase)
    let source = session.eventSourceRequest(request)
    if invocation.authentication == .digest, let credentials = invocation.credentials {
      source.authenticate(username: credentials.user, password: credentials.password ?? "")
    }
    let hops = [.everything, .headers].contains(invocation.shown) ? HopLog() : nil
    if let hops { source.eventMonitor(hops.log) }
    let palette = environment.palette(of: invocation)
    let isReadable = environment.showsReadableText(of: invocation)
    let names = environment.isOutputTerminal || invocation.shown == .everything
    // Serial, so that events keep their order; the main queue waits for the end.
    let queue = DispatchQueue(label: "af.events")
    let write = environment.writeOutput
    let writeHeads = { @Sendable () -> Bool in
      guard let hops else { return true }
      return write(Data(hops.takeText(palette, hasRequests: invocation.shown == .everything).utf8))
    }
    environment.interruption.onSignal { source.cancel() }
    let completion = await withCheckedContinuation { continuation in
      source.responseEvents(on: queue) { stream in
        switch stream.event {
        case .stream(.success(let event)):
          let hasHeads = writeHeads()
          let type = ReadableText.line(event.type)
          let head = names && event.type != "message" ? palette.paint("\(type): ", .name) : ""
          let data = isReadable ? ReadableText.lines(event.data) : event.data
          if !hasHeads || !write(Data((head + data + "\n").utf8)) { stream.cancel() }
        case .stream(.failure): break
        case .complete(let completion): continuation.resume(returning: completion)
        }
      }
    }
    _ = writeHeads()
    if completion.error != nil {
      let printer = ResponsePrinter(environment: environment, invocation: invocation)
      printer.writeRefused(source.data, completion.response)
    }
    if completion.response != nil { kept.store(from: session, invocation) }
    return finish(completion)
  }

  private func finish(_ completion: DataStreamRequest.Completion) -> ExitCode {
    // Without an error the server has ended the source; a cancellation is that of a reader that is gone.
    guard let error = completion.error, !error.isExplicitlyCancelledError else { return .success }
    Command.complain(FailureMessage.text(error, isVerbose: invocation.shown == .everything), in: environment)
    let status = completion.response.map { ExitCode(statusCode: $0.statusCode) } ?? .success
    return status == .success ? .failure : status
  }
}
