import Alamofire
import Testing

/// The samples of values that describe transfers, errors and trust, with their results.
@Suite("Samples of values", .timeLimit(.minutes(5))) struct ValueTests {
  @Test("The sample of a range has the bounds that its comment names") func range() {
    let range = ContentRange("bytes 100-199/1000")
    #expect(range?.bounds == 100..<200)
    #expect(range?.total == 1000)
  }

  @Test("The sample of pins prints the pins of a failure") func pins() {
    func printPins(of error: AFError) {
      if case .serverTrustEvaluationFailed(let reason) = error { print(reason.requiredPins) }
    }
    printPins(of: .serverTrustEvaluationFailed(reason: .noRequiredEvaluator(host: "a.test")))
  }

  @Test("The sample of a trust without certificates is an error") func trust() {
    var trust: SecTrust?
    #expect(SecTrustCreateWithCertificates([SecCertificate](), nil, &trust) == errSecParam)
  }

  @Test("The sample of a background session has no error in a writable folder") func background() {
    func printFolderError() {
      let session = Session(configuration: .background(withIdentifier: "com.example.sync"))
      if let error = session.backgroundFolderError { print("No transfers are continued: \(error)") }
    }
    #expect(Session(configuration: .ephemeral).backgroundFolderError == nil)
  }
}
