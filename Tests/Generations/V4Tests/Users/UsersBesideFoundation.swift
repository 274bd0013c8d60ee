import AlamofireV4
import Foundation
import Testing

@Suite("Users who import Foundation as well") struct UsersBesideFoundation {
  @Test("Encodings and headers match this generation") func encodingsAndHeaders() throws {
    let headers: HTTPHeaders = ["A": "1"]
    let parameters: Parameters = ["a": [1, 2] as [Any]]
    let request = try URLRequest(url: "https://a.test/", method: .get, headers: headers)
    let encoded = try URLEncoding.default.encode(request, with: parameters)
    #expect(encoded.url?.query == "a%5B%5D=1&a%5B%5D=2")
    #expect(encoded.urlRequest?.value(forHTTPHeaderField: "A") == "1")
    let result: Result<Int> = Result { 1 }
    #expect(result.value == 1)
    #expect(result.description == "SUCCESS")
  }
}
