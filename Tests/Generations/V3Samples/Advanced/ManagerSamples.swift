import AlamofireV3
import HTTPTestServer
import Testing

extension Samples {
  @Suite struct Managers {
    let site: Site

    init() throws { site = try Site() }

    // Manager
    @Test func sample32_sharedManager() async throws {
      Alamofire.request(.GET, "https://httpbin.org/get")

      let manager = Alamofire.Manager.sharedInstance
      manager.request(NSURLRequest(url: URL(string: "https://httpbin.org/get")!))

      let first = try await site.request()
      let second = try await site.request()
      #expect(first.target == "/get" && second.target == "/get")
      #expect(first.headers.map(\.value).sorted() == second.headers.map(\.value).sorted())
    }

    /// Checks that the manager sends a request. It has no host overrides for the servers of the samples.
    private func check(_ manager: Manager) async {
      let status: Int? = await waiting { done in
        manager.request(.GET, site.plain.url("/get")).response { _, response, _, _ in
          done(response?.statusCode)
        }
      }
      #expect(status == 200)
    }

    // Creating a Manager with Default Configuration
    @Test func sample33_defaultConfiguration() async {
      let configuration = URLSessionConfiguration.default
      configuration.urlCache = nil  // Not in the document: responses of earlier runs must not be used.
      let manager = Alamofire.Manager(configuration: configuration)
      await check(manager)
    }

    // Creating a Manager with Background Configuration
    @Test func sample34_backgroundConfiguration() async {
      let configuration = URLSessionConfiguration.backgroundSessionConfigurationWithIdentifier(
        "com.example.app.background")
      configuration.urlCache = nil  // Not in the document.
      let manager = Alamofire.Manager(configuration: configuration)
      await check(manager)
    }

    // Creating a Manager with Ephemeral Configuration
    @Test func sample35_ephemeralConfiguration() async {
      let configuration = URLSessionConfiguration.ephemeral
      let manager = Alamofire.Manager(configuration: configuration)
      await check(manager)
    }

    // Modifying Session Configuration
    @Test func sample36_modifyingTheConfiguration() async throws {
      var defaultHeaders =
        Alamofire.Manager.sharedInstance.session.configuration.httpAdditionalHeaders ?? [:]
      defaultHeaders["DNT"] = "1 (Do Not Track Enabled)"

      let configuration = URLSessionConfiguration.default
      configuration.httpAdditionalHeaders = defaultHeaders
      configuration.urlCache = nil  // Not in the document.

      let manager = Alamofire.Manager(configuration: configuration)
      await check(manager)
      let request = try await site.plain.takeRequest()
      #expect(request.header("DNT") == "1 (Do Not Track Enabled)")
      #expect(request.header("User-Agent")?.contains("Alamofire") == true)
    }
  }
}
