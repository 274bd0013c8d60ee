public import Foundation

extension ServerTrust: AlamofireExtended {}

extension AlamofireExtension where ExtendedType == SecTrust {
  /// The public keys of `certificates`.
  public var publicKeys: [SecKey] { type.serverCertificates.compactMap(\.publicKey) }

  /// The certificates that really are the server's; see ``ServerTrust/serverCertificates``.
  public var certificates: [SecCertificate] { type.serverCertificates }

  /// The DER encoding of each of `certificates`.
  public var certificateData: [Data] { type.serverCertificates.map(\.data) }

  /// Puts `policy` in the place of the policies so far, and evaluates.
  ///
  /// - Throws: `AFError.serverTrustEvaluationFailed` with `trustEvaluationFailed`.
  public func evaluate(afterApplying policy: SecPolicy) throws {
    try apply(policy: policy).af.evaluate()
  }

  /// Puts `policy` in the place of the policies so far. Throws nothing here.
  ///
  /// - Returns: The trust itself, which is changed.
  public func apply(policy: SecPolicy) throws -> SecTrust {
    type.policies = [policy]
    return type
  }

  /// Evaluates with the policies and anchors that are set.
  ///
  /// - Throws: `AFError.serverTrustEvaluationFailed` with `trustEvaluationFailed`, and a ``ServerTrust/Failure`` in
  ///   it.
  public func evaluate() throws {
    do {
      try type.evaluate()
    } catch {
      throw AFError.serverTrustEvaluationFailed(reason: .trustEvaluationFailed(error: error))
    }
  }

  /// Evaluates the lists of the program alone, where neither chain nor host are verified: these lists always count.
  ///
  /// - Throws: `AFError.serverTrustEvaluationFailed` with `trustEvaluationFailed`.
  func evaluateLists() throws {
    do {
      try type.evaluateLists()
    } catch {
      throw AFError.serverTrustEvaluationFailed(reason: .trustEvaluationFailed(error: error))
    }
  }

  /// Makes these certificates the only ones that chains may end at. Throws nothing here.
  public func setAnchorCertificates(_ certificates: [SecCertificate]) throws {
    type.anchors = certificates
  }

  /// Evaluates without a host name: that a path leads to a trusted certificate, and the dates.
  ///
  /// - Throws: `AFError.serverTrustEvaluationFailed`.
  public func performDefaultValidation(forHost host: String) throws {
    try evaluate(afterApplying: .default)
  }

  /// Evaluates as for `host`: that, and that the certificate is valid for this name or address.
  ///
  /// - Throws: `AFError.serverTrustEvaluationFailed`.
  public func performValidation(forHost host: String) throws {
    try evaluate(afterApplying: .hostname(host))
  }

  /// Puts `policy` in the place of the policies so far, evaluates, and throws the error that is made of the
  /// result.
  @available(*, deprecated, message: "evaluate(afterApplying:) says what is wrong")
  public func validate(
    policy: SecPolicy, errorProducer: (_ status: OSStatus, _ result: SecTrustResultType) -> any Error
  ) throws {
    type.policies = [policy]
    try evaluate(errorProducer)
  }

  /// Evaluates, and throws the error that is made of the result.
  @available(*, deprecated, message: "evaluate() says what is wrong")
  public func validate(
    errorProducer: (_ status: OSStatus, _ result: SecTrustResultType) -> any Error
  ) throws {
    try evaluate(errorProducer)
  }

  private func evaluate(_ makeError: (OSStatus, SecTrustResultType) -> any Error) throws {
    do {
      try type.evaluate()
    } catch {
      throw makeError(error.status, error.result)
    }
  }
}
