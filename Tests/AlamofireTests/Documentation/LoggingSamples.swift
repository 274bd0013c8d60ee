import Alamofire
import Foundation

// Samples of the comments on logging; see `SampleTests`.

private func redactionSample() {
  let redaction = Redaction(additionalNames: ["X-Customer", "iban"])
  print(redaction.url("https://example.com/pay?iban=DE02&amount=5"))
}
