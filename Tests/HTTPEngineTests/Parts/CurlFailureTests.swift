import Glibc
import HTTPEngine
import HTTPWire
import Testing

@Suite struct CurlFailureTests {
  /// Codes that a client of http and https never gets: those of other protocols, and unused ones.
  static let impossible: Set<Int32> = [
    10, 11, 12, 13, 14, 15, 17, 19, 30, 31, 84, 87,  // FTP
    20, 24, 29, 32, 40, 44, 46, 50, 51, 57, 62, 75, 76,  // obsolete
    21, 34, 38, 39,  // QUOTE, the old form functions, LDAP
    68, 69, 70, 71, 72, 73, 74,  // TFTP
    79, 85, 86,  // SSH, RTSP
  ]
  /// Codes of faults in this package or in libcurl, about which a user can do nothing.
  static let internalFaults: Set<Int32> = [2, 43, 81, 93, 99]

  @Test("Every code of libcurl has a message") func messages() {
    // A code that a newer header adds has to be put into one of the tables.
    for code in 1..<max(CurlFailure.codeLimit, 102) where !Self.impossible.contains(code) {
      let (kind, sentence) = CurlFailure.meaning(of: code)
      #expect((kind == .unknown) == Self.internalFaults.contains(code), "code \(code): \(kind)")
      #expect(
        sentence.count > 20 && sentence.contains(".") || sentence.contains(";"), "code \(code): \(sentence)")
      #expect(!sentence.contains("does not concern HTTP"), "code \(code)")
    }
  }

  @Test("An impossible code is unknown") func impossibleCodes() {
    for code in Self.impossible {
      #expect(CurlFailure.meaning(of: code).kind == .unknown, "code \(code)")
    }
    #expect(CurlFailure.meaning(of: 5000).kind == .unknown)
    #expect(CurlFailure.meaning(of: -1).kind == .unknown)
  }

  static let kinds: [(Int32, TransportFailure.Kind)] = [
    (3, .badURL), (5, .cannotFindProxy), (6, .cannotFindHost), (7, .cannotConnectToHost),
    (18, .connectionLost),
    (28, .timedOut), (35, .secureConnectionFailed), (52, .connectionLost), (55, .connectionLost),
    (56, .connectionLost), (58, .clientCertificateRejected), (60, .certificateUntrusted),
    (61, .cannotDecodeContent), (63, .dataLengthExceedsMaximum), (65, .cannotReadBody),
    (98, .clientCertificateRequired),
    (100, .dataLengthExceedsMaximum),
  ]

  @Test(
    "A transfer without a descriptor is reported apart from a host that refuses",
    arguments: [
      (7, EMFILE, nil, "the process"), (7, ENFILE, nil, "the machine"), (7, 0, EMFILE, "the process"),
      (6, 0, EMFILE, "the process"), (5, 0, ENFILE, "the machine"), (7, 0, nil, nil),
      (7, ECONNREFUSED, EMFILE, nil),
      (7, 0, EACCES, nil), (28, 0, EMFILE, nil), (6, 0, nil, nil),
    ] as [(Int32, Int32, Int32?, String?)])
  func descriptors(code: Int32, systemError: Int32, probed: Int32?, owner: String?) {
    let failure = CurlFailure.lackOfDescriptors(
      code, host: "a.test", systemError: systemError, metrics: nil, probe: { _ in probed })
    #expect((failure == nil) == (owner == nil))
    guard let failure, let owner else { return }
    #expect(failure.kind == .resourceUnavailable && failure.curlCode == code)
    #expect(failure.message.contains("a.test") && failure.message.contains("ulimit -n"))
    #expect(failure.message.contains("because \(owner) has no file descriptors left"))
  }

  @Test("A code has a specific kind", arguments: kinds)
  func kindOfCode(code: Int32, kind: TransportFailure.Kind) {
    #expect(CurlFailure.meaning(of: code).kind == kind)
  }
}
