import Alamofire
import Foundation
import FoundationNetworking
import Testing

@Suite("Options of retry policies") struct RetryPolicyOptionTests {
  private static let codes: Set<URLError.Code> = [.cannotFindHost]

  private func describe(_ policy: RetryPolicy) -> String {
    let methods = policy.retryableHTTPMethods.map(\.rawValue).joined()
    let codes = policy.retryableURLErrorCodes.map { "\($0.rawValue)" }.joined()
    let statuses = policy.retryableHTTPStatusCodes.map { "\($0)" }.joined()
    let longest = policy.maximumRetryAfter.map { "\($0)" } ?? "none"
    return
      "\(policy.retryLimit) \(policy.exponentialBackoffBase) \(policy.exponentialBackoffScale) \(methods) "
      + "\(statuses) \(codes) \(longest) \(policy.jitter)"
  }

  @Test("Each initializer and each factory keeps every option") func general() {
    let code = "\(URLError.Code.cannotFindHost.rawValue)"
    for policy in [
      RetryPolicy(
        retryLimit: 7, exponentialBackoffBase: 8, exponentialBackoffScale: 9, retryableHTTPMethods: [.patch],
        retryableHTTPStatusCodes: [404], retryableURLErrorCodes: Self.codes),
      .retryPolicy(
        retryLimit: 7, exponentialBackoffBase: 8, exponentialBackoffScale: 9, retryableHTTPMethods: [.patch],
        retryableHTTPStatusCodes: [404], retryableURLErrorCodes: Self.codes),
    ] {
      #expect(describe(policy) == "7 8 9.0 PATCH 404 \(code) none none")
    }
    for policy in [
      RetryPolicy(
        retryLimit: 7, exponentialBackoffBase: 8, exponentialBackoffScale: 9, retryableHTTPMethods: [.patch],
        retryableHTTPStatusCodes: [404], retryableURLErrorCodes: Self.codes, maximumRetryAfter: 10,
        jitter: .full),
      .retryPolicy(
        retryLimit: 7, exponentialBackoffBase: 8, exponentialBackoffScale: 9, retryableHTTPMethods: [.patch],
        retryableHTTPStatusCodes: [404], retryableURLErrorCodes: Self.codes, maximumRetryAfter: 10,
        jitter: .full),
    ] {
      #expect(describe(policy) == "7 8 9.0 PATCH 404 \(code) 10.0 full")
    }
    #expect(describe(.retryPolicy) == describe(RetryPolicy()))
    #expect(RetryPolicy(exponentialBackoffBase: 1, jitter: .full).exponentialBackoffBase == 2)
  }

  @Test("The policy for lost connections has its own codes, and keeps the other options")
  func lostConnections() {
    let code = "\(URLError.Code.networkConnectionLost.rawValue)"
    for policy in [
      ConnectionLostRetryPolicy(
        retryLimit: 7, exponentialBackoffBase: 8, exponentialBackoffScale: 9, retryableHTTPMethods: [.patch]),
      .connectionLostRetryPolicy(
        retryLimit: 7, exponentialBackoffBase: 8, exponentialBackoffScale: 9, retryableHTTPMethods: [.patch]),
    ] {
      #expect(describe(policy) == "7 8 9.0 PATCH  \(code) none none")
    }
    for policy in [
      ConnectionLostRetryPolicy(
        retryLimit: 7, exponentialBackoffBase: 8, exponentialBackoffScale: 9, retryableHTTPMethods: [.patch],
        jitter: .full),
      .connectionLostRetryPolicy(
        retryLimit: 7, exponentialBackoffBase: 8, exponentialBackoffScale: 9, retryableHTTPMethods: [.patch],
        jitter: .full),
    ] {
      #expect(describe(policy) == "7 8 9.0 PATCH  \(code) none full")
    }
    let usual: ConnectionLostRetryPolicy = .connectionLostRetryPolicy
    #expect(describe(usual) == describe(ConnectionLostRetryPolicy()))
  }

  @Test("Compressors keep their options") func compressors() {
    for behavior in [DeflateRequestCompressor.DuplicateHeaderBehavior.error, .replace, .skip] {
      let compressor = DeflateRequestCompressor.deflateCompressor(
        duplicateHeaderBehavior: behavior, shouldCompressBodyData: { $0.count == 3 })
      #expect(compressor.duplicateHeaderBehavior == behavior)
      #expect(compressor.shouldCompressBodyData(Data(count: 3)))
      #expect(!compressor.shouldCompressBodyData(Data(count: 4)))
    }
    #expect(DeflateRequestCompressor.deflateCompressor.duplicateHeaderBehavior == .error)
    #expect(GzipRequestCompressor.gzipCompressor.duplicateHeaderBehavior == .error)
  }
}
