import Glibc
import HTTPSystem
package import HTTPWire

/// Makes the tokens of one login that takes several rounds.
package struct LoginTokens: Sendable {
  /// The schemes for which this process can make tokens.
  package static let schemes: Set<AuthenticationScheme> = {
    var schemes: Set<AuthenticationScheme> = []
    // NTLM needs MD5, which may be switched off.
    if OpenSSLHashes().hash(.md5, []) != nil { schemes.insert(.ntlm) }
    if GSSAPI.functions != nil { schemes.insert(.negotiate) }
    return schemes
  }()

  private enum Maker {
    case ntlm(NTLMClient)
    case negotiate(NegotiateConversation)
    case none
  }

  private let maker: Maker

  /// Makes the tokens for a login.
  ///
  /// - Parameter host: The server, or the proxy, that asks for the login.
  init(_ credential: PasswordCredential, host: String, _ scheme: AuthenticationScheme) {
    maker =
      switch scheme {
      case .ntlm: .ntlm(NTLMClient(credential: credential, hashes: OpenSSLHashes()))
      case .negotiate: NegotiateConversation(host: host).map { .negotiate($0) } ?? .none
      case .basic, .digest: .none
      }
  }

  /// The answer to a challenge, or how to get it.
  enum Answer {
    /// The token; `nil` if there is none.
    case token([UInt8]?)
    /// The token can take long, so ``PendingTokens`` makes it.
    case takesTime(NegotiateConversation)
  }

  /// Returns the answer to a challenge, which is empty for the first token.
  func answer(to challenge: [UInt8]) -> Answer {
    switch maker {
    case .none: .token(nil)
    case .ntlm(let client): .token(Self.message(of: client, answering: challenge))
    case .negotiate(let conversation): .takesTime(conversation)
    }
  }

  private static func message(of client: NTLMClient, answering challenge: [UInt8]) -> [UInt8]? {
    guard !challenge.isEmpty else { return NTLMClient.negotiateMessage }
    let time = NTLMClient.time(unixSeconds: Int64(Clock.wall()))
    return try? client.answer(
      to: challenge, clientChallenge: UInt64.random(in: 0 ... .max), time: time)
  }
}

/// The tokens that are being generated on other threads. Belongs to the loop's thread.
final class PendingTokens {
  /// The threads of the process that make tokens. They look up no names, because a key distribution centre that does
  /// not answer can hold all of them.
  static let sharedThreads = LookupThreads(mostThreads: 4)

  private var waiting: [UInt64: ([UInt8]?) -> Void] = [:]
  private var last: UInt64 = 0

  /// Unowned, because this is a part of the loop.
  unowned(unsafe) var owner: EventLoop!
  /// The threads that make tokens. Tests replace them.
  var threads = sharedThreads

  /// Makes a token on another thread, and passes it on in a later turn of the loop, unless the result was released
  /// before.
  func make(
    with conversation: NegotiateConversation, answering challenge: [UInt8],
    then: @escaping ([UInt8]?) -> Void
  ) -> PendingToken {
    make({ conversation.token(answering: challenge) }, then: then)
  }

  /// Makes a token by a function that may block.
  func make(_ token: @escaping @Sendable () -> [UInt8]?, then: @escaping ([UInt8]?) -> Void) -> PendingToken {
    last += 1
    let number = last
    waiting[number] = then
    let work = threads.run { [weak owner] in
      let token = token()
      owner?.post(.run { $0.tokens.made(number, token) })
    }
    return PendingToken(number, work, threads, self)
  }

  private func made(_ number: UInt64, _ token: [UInt8]?) { waiting.removeValue(forKey: number)?(token) }

  fileprivate func forget(_ number: UInt64) { waiting[number] = nil }
}

/// A token that is being generated, for the one that waits for it. Its release gives the token up: one that no thread
/// has begun takes no thread, and no token arrives any more. Belongs to the loop's thread.
final class PendingToken {
  private let number: UInt64
  private let work: UInt64
  private let threads: LookupThreads
  private weak var tokens: PendingTokens?

  fileprivate init(_ number: UInt64, _ work: UInt64, _ threads: LookupThreads, _ tokens: PendingTokens) {
    self.number = number
    self.work = work
    self.threads = threads
    self.tokens = tokens
  }

  deinit {
    _ = threads.withdraw(work)
    tokens?.forget(number)
  }
}

/// The system's GSSAPI (RFC 2743, RFC 2744), which makes tokens from the Kerberos tickets of the process. It is loaded
/// when it is first needed, so that programs without tickets do not need Kerberos.
enum GSSAPI {
  typealias Status = UInt32
  typealias ImportName =
    @Sendable @convention(c) (
      UnsafeMutablePointer<Status>, UnsafeMutableRawPointer, UnsafeMutableRawPointer,
      UnsafeMutablePointer<OpaquePointer?>
    ) -> Status
  typealias BeginContext =
    @Sendable @convention(c) (
      UnsafeMutablePointer<Status>, OpaquePointer?, UnsafeMutablePointer<OpaquePointer?>, OpaquePointer?,
      UnsafeMutableRawPointer, UInt32, UInt32, OpaquePointer?, UnsafeMutableRawPointer, OpaquePointer?,
      UnsafeMutableRawPointer, UnsafeMutablePointer<UInt32>?, UnsafeMutablePointer<UInt32>?
    ) -> Status
  typealias Release =
    @Sendable @convention(c) (UnsafeMutablePointer<Status>, UnsafeMutablePointer<OpaquePointer?>) -> Status
  typealias ReleaseBuffer =
    @Sendable @convention(c) (UnsafeMutablePointer<Status>, UnsafeMutableRawPointer) -> Status
  typealias DeleteContext =
    @Sendable @convention(c) (
      UnsafeMutablePointer<Status>, UnsafeMutablePointer<OpaquePointer?>, OpaquePointer?
    ) -> Status

  /// `gss_buffer_desc`, and the layout of `gss_OID_desc` too, because the length of the latter is padded.
  struct Buffer {
    var length = 0
    var value: UnsafeMutableRawPointer?
  }

  /// The functions of the library.
  struct Functions: Sendable {
    let importName: ImportName
    let beginContext: BeginContext
    let releaseName: Release
    let releaseBuffer: ReleaseBuffer
    let deleteContext: DeleteContext
  }

  /// The functions; `nil` if the library is not installed.
  static let functions: Functions? = load("libgssapi_krb5.so.2")

  private static func load(_ name: String) -> Functions? {
    // The library stays loaded, because it has its own thread-local data.
    guard let library = dlopen(name, RTLD_NOW | RTLD_LOCAL) else { return nil }
    func find<Function>(_ name: String, _ type: Function.Type) -> Function? {
      dlsym(library, name).map { unsafeBitCast($0, to: type) }
    }
    guard let importName = find("gss_import_name", ImportName.self),
      let beginContext = find("gss_init_sec_context", BeginContext.self),
      let releaseName = find("gss_release_name", Release.self),
      let releaseBuffer = find("gss_release_buffer", ReleaseBuffer.self),
      let deleteContext = find("gss_delete_sec_context", DeleteContext.self)
    else { return nil }
    return Functions(
      importName: importName, beginContext: beginContext, releaseName: releaseName,
      releaseBuffer: releaseBuffer, deleteContext: deleteContext)
  }
}

/// The conversation of a login by Negotiate (RFC 4559), with the ticket of the process for `HTTP/host`.
///
/// A token can take long, because the library may ask a key distribution centre for a ticket. Therefore it is generated
/// on a thread of ``PendingTokens``.
///
/// Unchecked: one thread at a time uses it, the thread that makes a token, or the one that releases the last
/// reference.
final class NegotiateConversation: @unchecked Sendable {
  /// SPNEGO (RFC 4178): 1.3.6.1.5.5.2.
  private static let mechanism: [UInt8] = [0x2B, 0x06, 0x01, 0x05, 0x05, 0x02]
  /// The names of services, `service@host` (RFC 2743 §4.1): 1.2.840.113554.1.2.1.4.
  private static let serviceName: [UInt8] = [
    0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 0x01, 0x02, 0x01, 0x04,
  ]
  /// The server proves itself, and tokens that are sent again are noticed.
  private static let flags: UInt32 = 2 | 4
  private static let errorMask: UInt32 = 0xFFFF_0000

  private let functions: GSSAPI.Functions
  private let host: String
  private var name: OpaquePointer?
  private var context: OpaquePointer?

  /// Makes a conversation; `nil` without the library.
  init?(host: String) {
    guard let functions = GSSAPI.functions else { return nil }
    self.functions = functions
    self.host = host
  }

  deinit {
    var minor: GSSAPI.Status = 0
    forgetContext()
    if name != nil { _ = functions.releaseName(&minor, &name) }
  }

  /// Returns the token that answers `challenge`, which is empty at the beginning of the conversation; `nil` if there is
  /// none, for example without a ticket. May block for a long time.
  func token(answering challenge: [UInt8]) -> [UInt8]? {
    if challenge.isEmpty { forgetContext() } else if context == nil { return nil }
    guard importName() else { return nil }
    var minor: GSSAPI.Status = 0
    var output = GSSAPI.Buffer()
    var input = challenge
    let status = Self.withBuffer(&input) { input in
      var identifier = Self.mechanism
      return Self.withBuffer(&identifier) { identifier in
        withUnsafeMutablePointer(to: &output) { output in
          functions.beginContext(
            &minor, nil, &context, name, identifier, Self.flags, 0, nil, input, nil, output, nil, nil)
        }
      }
    }
    defer { withUnsafeMutablePointer(to: &output) { _ = functions.releaseBuffer(&minor, $0) } }
    guard status & Self.errorMask == 0, output.length > 0, let value = output.value else { return nil }
    return Array(UnsafeRawBufferPointer(start: value, count: output.length))
  }

  private func importName() -> Bool {
    guard name == nil else { return true }
    var minor: GSSAPI.Status = 0
    var text = Array("HTTP@\(host)".utf8)
    var kind = Self.serviceName
    let status = Self.withBuffer(&text) { text in
      Self.withBuffer(&kind) { functions.importName(&minor, text, $0, &name) }
    }
    return status & Self.errorMask == 0 && name != nil
  }

  private func forgetContext() {
    guard context != nil else { return }
    var minor: GSSAPI.Status = 0
    _ = functions.deleteContext(&minor, &context, nil)
    context = nil
  }

  /// Calls `body` with a description of the bytes in the layout of the library.
  private static func withBuffer<Result>(
    _ bytes: inout [UInt8], _ body: (UnsafeMutableRawPointer) -> Result
  ) -> Result {
    bytes.withUnsafeMutableBytes { room in
      var buffer = GSSAPI.Buffer(length: room.count, value: room.baseAddress)
      return withUnsafeMutablePointer(to: &buffer) { body($0) }
    }
  }
}
