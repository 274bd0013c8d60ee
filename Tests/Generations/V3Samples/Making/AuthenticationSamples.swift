import AlamofireV3
import HTTPTestServer
import Testing

extension Samples {
  @Suite struct Authentication {
    let site: Site

    init() throws { site = try Site() }

    // HTTP Basic Authentication
    @Test func sample25_userAndPassword() async {
      let json: Any? = await waiting { done in
        let user = "user"
        let password = "password"

        Alamofire.request(.GET, "https://httpbin.org/basic-auth/\(user)/\(password)")
          .authenticate(user: user, password: password)
          .responseJSON { response in
            debugPrint(response)
            done(response.result.value)
          }
      }

      #expect(value("user", of: json) == "user")
    }

    @Test func sample26_authorizationField() async {
      let json: Any? = await waiting { done in
        let user = "user"
        let password = "password"

        let credentialData = "\(user):\(password)".data(using: .utf8)!
        let base64Credentials = credentialData.base64EncodedString(options: [])

        let headers = ["Authorization": "Basic \(base64Credentials)"]

        Alamofire.request(.GET, "https://httpbin.org/basic-auth/user/password", headers: headers)
          .responseJSON { response in
            debugPrint(response)
            done(response.result.value)
          }
      }

      #expect(value("user", of: json) == "user")
    }

    // Authentication with NSURLCredential
    @Test func sample27_credential() async {
      let json: Any? = await waiting { done in
        let user = "user"
        let password = "password"

        let credential = URLCredential(user: user, password: password, persistence: .forSession)

        Alamofire.request(.GET, "https://httpbin.org/basic-auth/\(user)/\(password)")
          .authenticate(usingCredential: credential)
          .responseJSON { response in
            debugPrint(response)
            done(response.result.value)
          }
      }

      #expect(value("user", of: json) == "user")
    }
  }
}
