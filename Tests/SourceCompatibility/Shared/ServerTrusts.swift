import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Evaluators, managers and the helpers of Security's types.

private func managers() {
  let evaluators: [String: ServerTrustEvaluating] = [
    "a.example.com": DefaultTrustEvaluator(validateHost: false),
    "b.example.com": RevocationTrustEvaluator(
      performDefaultValidation: true, validateHost: true, options: [.crl, .requirePositiveResponse]),
    "c.example.com": PinnedCertificatesTrustEvaluator(
      certificates: Bundle.main.af.certificates, acceptSelfSignedCertificates: true,
      performDefaultValidation: true, validateHost: false),
    "d.example.com": PublicKeysTrustEvaluator(keys: Bundle.main.af.publicKeys),
    "e.example.com": CompositeTrustEvaluator(evaluators: [
      PinnedCertificatesTrustEvaluator(), RevocationTrustEvaluator(),
    ]),
    "f.example.com": DisabledTrustEvaluator(),
  ]
  let manager = ServerTrustManager(allHostsMustBeEvaluated: false, evaluators: evaluators)
  _ = Session(serverTrustManager: manager)
  _ = ServerTrustManager(evaluators: [
    "a.example.com": .revocationChecking, "b.example.com": .pinnedCertificates,
    "c.example.com": .pinnedCertificates(acceptSelfSignedCertificates: true),
    "d.example.com": .publicKeys(validateHost: false), "e.example.com": .revocationChecking(options: .any),
    "f.example.com": .composite(evaluators: [.publicKeys, .revocationChecking]),
  ])
}

private final class SubdomainManager: ServerTrustManager, @unchecked Sendable {
  override func serverTrustEvaluator(forHost host: String) throws -> ServerTrustEvaluating? {
    if host.hasSuffix(".example.com") { return evaluators["example.com"] }
    return try super.serverTrustEvaluator(forHost: host)
  }
}

private final class KeyEvaluator: ServerTrustEvaluating {
  private let keys: Set<SecKey>

  init(keys: [SecKey]) { self.keys = Set(keys) }

  func evaluate(_ trust: SecTrust, forHost host: String) throws {
    try trust.af.performDefaultValidation(forHost: host)
    try trust.af.performValidation(forHost: host)
    try trust.af.evaluate(afterApplying: SecPolicy.af.hostname(host))
    try trust.af.apply(policy: SecPolicy.af.default).af.evaluate()
    try trust.af.setAnchorCertificates(trust.af.certificates)
    guard !keys.isDisjoint(with: trust.af.publicKeys) else {
      throw AFError.serverTrustEvaluationFailed(
        reason: .publicKeyPinningFailed(
          host: host, trust: trust, pinnedKeys: Array(keys), serverKeys: trust.af.publicKeys))
    }
    try [DefaultTrustEvaluator()].evaluate(trust, forHost: host)
  }
}

private func helpers(trust: SecTrust, certificate: SecCertificate, status: OSStatus) throws {
  let data: [Data] = trust.af.certificateData
  let keys: [SecKey] = [certificate].af.publicKeys
  let bytes: [Data] = [certificate].af.data
  let key: SecKey? = certificate.af.publicKey
  let paths: [String] = Bundle.main.af.paths(forResourcesOfTypes: [".cer", ".der"])
  try trust.af.apply(policy: SecPolicy.af.revocation(options: .ocsp)).af.evaluate()
  _ = (data, keys, bytes, key, paths, status.af.isSuccess)
}

private func failures(_ error: AFError) -> String {
  guard error.isServerTrustEvaluationError, case .serverTrustEvaluationFailed(let reason) = error else {
    return "other"
  }
  switch reason {
  case .noRequiredEvaluator(let host): return host
  case .noCertificatesFound, .noPublicKeysFound, .revocationPolicyCreationFailed: return "nothing"
  case .policyApplicationFailed(let trust, let policy, let status): return "\(trust) \(policy) \(status)"
  case .settingAnchorCertificatesFailed(let status, let certificates):
    return "\(status) \(certificates.count)"
  case .trustEvaluationFailed(let error): return error?.localizedDescription ?? "refused"
  case .defaultEvaluationFailed(let output), .hostValidationFailed(let output): return output.host
  case .revocationCheckFailed(let output, let options): return "\(output.result) \(options.rawValue)"
  case .certificatePinningFailed(let host, _, let pinned, let shown):
    return "\(host) \(pinned.count) \(shown.count)"
  case .publicKeyPinningFailed(let host, _, let pinned, let shown):
    return "\(host) \(pinned.count) \(shown.count)"
  case .customEvaluationFailed(let error): return "\(error)"
  }
}

/// Whether a trust passes the certificate pinning of a session delegate, written for Apple's Security framework.
private func pinsCertificate(_ trust: SecTrust, host: String, pinned: Data) -> Bool {
  SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, host as CFString))
  var error: CFError?
  guard SecTrustEvaluateWithError(trust, &error),
    let chain = SecTrustCopyCertificateChain(trust) as? [SecCertificate], let leaf = chain.first,
    let wanted = SecCertificateCreateWithData(nil, pinned as CFData)
  else {
    print(error?.localizedDescription ?? "not trusted")
    return false
  }
  return SecCertificateCopyData(leaf) as Data == SecCertificateCopyData(wanted) as Data
}

/// Compares keys as the key pinning of a session delegate, with the functions of older systems.
private func pinsKey(_ trust: SecTrust, pinned: Set<Data>) -> Bool {
  for index in 0..<SecTrustGetCertificateCount(trust) {
    guard let certificate = SecTrustGetCertificateAtIndex(trust, index),
      let key = SecCertificateCopyKey(certificate), let data = SecKeyCopyExternalRepresentation(key, nil)
    else { continue }
    print(SecCertificateCopySubjectSummary(certificate) as String? ?? "")
    if pinned.contains(data as Data) { return true }
  }
  return SecTrustCopyKey(trust) == nil
}

#if !IMPORTS_FOUNDATION_NETWORKING
  // A file that imports FoundationNetworking sees its types of these names as well, so it names the module.
  private func agreed(_ metrics: URLSessionTaskTransactionMetrics) -> Bool {
    let oldest: tls_protocol_version_t = .TLSv12
    let suites: [tls_ciphersuite_t] = [.AES_128_GCM_SHA256, .ECDHE_RSA_WITH_AES_128_GCM_SHA256]
    guard let version = metrics.negotiatedTLSProtocolVersion, let suite = metrics.negotiatedTLSCipherSuite
    else {
      return false
    }
    return version.rawValue >= oldest.rawValue && suites.contains(suite)
  }
#endif
