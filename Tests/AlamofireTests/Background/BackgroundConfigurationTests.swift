import Alamofire
import Foundation
import FoundationNetworking
import Testing

@Suite("Configurations of background sessions") struct BackgroundConfigurationTests {
  @Test("A copy has the settings of its original, and is independent of it") func copy() throws {
    let folder = URL(fileURLWithPath: "/nowhere")
    let original = URLSessionConfiguration.background(
      withIdentifier: "copies", folder: folder, restoredDownloadsTo: { file, _ in (file, []) })
    original.requestCachePolicy = .returnCacheDataElseLoad
    original.timeoutIntervalForRequest = 11
    original.timeoutIntervalForResource = 12
    original.networkServiceType = .background
    original.allowsCellularAccess = false
    original.isDiscretionary = true
    original.connectionProxyDictionary = ["HTTPEnable": 1]
    original.httpShouldSetCookies = false
    original.httpCookieAcceptPolicy = .never
    original.httpAdditionalHeaders = ["X": "y"]
    original.httpMaximumConnectionsPerHost = 13
    original.httpCookieStorage = nil
    original.urlCredentialStorage = nil
    original.urlCache = nil
    original.protocolClasses = []
    let copy = try #require(original.copy() as? URLSessionConfiguration)
    original.timeoutIntervalForRequest = 14
    #expect(copy !== original && copy.identifier == "copies")
    #expect(copy.requestCachePolicy == .returnCacheDataElseLoad)
    #expect(copy.timeoutIntervalForRequest == 11 && copy.timeoutIntervalForResource == 12)
    #expect(copy.networkServiceType == .background && !copy.allowsCellularAccess && copy.isDiscretionary)
    #expect(copy.connectionProxyDictionary?["HTTPEnable"] as? Int == 1)
    #expect(!copy.httpShouldSetCookies && copy.httpCookieAcceptPolicy == .never)
    #expect(copy.httpAdditionalHeaders as? [String: String] == ["X": "y"])
    #expect(copy.httpMaximumConnectionsPerHost == 13)
    #expect(copy.httpCookieStorage == nil && copy.urlCredentialStorage == nil && copy.urlCache == nil)
    #expect(copy.protocolClasses?.isEmpty == true)
  }

  @Test("A background configuration of the library has the default headers") func headers() {
    let configuration = URLSessionConfiguration.af.background(withIdentifier: "headers")
    #expect(configuration.identifier == "headers")
    #expect(configuration.headers.dictionary == HTTPHeaders.default.dictionary)
  }

  @Test("Settings that Foundation lacks belong to one configuration, and are copied by its session")
  func additions() {
    let configuration = URLSessionConfiguration.uncached
    let other = URLSessionConfiguration.uncached
    #expect(!configuration.waitsForConnectivity && !configuration.sessionSendsLaunchEvents)
    #expect(URLSessionConfiguration.background(withIdentifier: "launches").sessionSendsLaunchEvents)
    configuration.waitsForConnectivity = true
    configuration.sessionSendsLaunchEvents = true
    #expect(!other.waitsForConnectivity && !other.sessionSendsLaunchEvents)
    let session = Session(configuration: configuration)
    configuration.waitsForConnectivity = false
    let copy = session.sessionConfiguration
    #expect(copy.waitsForConnectivity && copy.sessionSendsLaunchEvents)
    #expect(session.session.configuration.waitsForConnectivity)
  }
}
