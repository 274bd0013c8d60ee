import Alamofire
import Testing

struct URLSessionConfigurationTests {
  @Test("Our configurations have the default header fields and are fresh each time")
  func defaultConfigurations() {
    for make in [
      { URLSessionConfiguration.af.default }, { URLSessionConfiguration.af.ephemeral },
    ] {
      let configuration = make()
      #expect(configuration.headers.sorted() == HTTPHeaders.default.sorted())
      configuration.headers = ["X-Mine": "1"]
      #expect(configuration.httpAdditionalHeaders as? [String: String] == ["X-Mine": "1"])
      #expect(make().headers.sorted() == HTTPHeaders.default.sorted())
    }
  }

  @Test("A plain configuration has no header fields")
  func plainConfiguration() {
    #expect(URLSessionConfiguration.default.headers.isEmpty)
  }

  @Test("Properties that Foundation lacks stay with their configuration and its sessions")
  func additions() {
    let configuration = URLSessionConfiguration.af.default
    #expect(!configuration.sessionSendsLaunchEvents)
    #expect(configuration.sharedContainerIdentifier == nil)
    configuration.sessionSendsLaunchEvents = true
    configuration.sharedContainerIdentifier = "group.test"
    let session = Session(configuration: configuration)
    configuration.sharedContainerIdentifier = nil
    #expect(configuration.sessionSendsLaunchEvents)
    #expect(configuration.sharedContainerIdentifier == nil)
    #expect(session.sessionConfiguration.sessionSendsLaunchEvents)
    #expect(session.sessionConfiguration.sharedContainerIdentifier == "group.test")
    #expect(!session.sessionConfiguration.waitsForConnectivity)
    #expect(!URLSessionConfiguration.af.default.sessionSendsLaunchEvents)
    let background = URLSessionConfiguration.background(withIdentifier: "a")
    #expect(background.sessionSendsLaunchEvents)
    background.sessionSendsLaunchEvents = false
    #expect(!background.sessionSendsLaunchEvents)
  }

  @Test("Header fields that are not text are ignored")
  func headersThatAreNotText() {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["X-Number": 1]
    #expect(configuration.headers.isEmpty)
  }
}

struct Celsius: AlamofireExtended {
  var degrees: Double
}

extension AlamofireExtension where ExtendedType == Celsius {
  static var freezing: Celsius { Celsius(degrees: 0) }
  var fahrenheit: Double { type.degrees * 1.8 + 32 }
}

struct AlamofireExtendedTests {
  @Test("A type of the user gets the af namespace")
  func ownType() {
    #expect(Celsius.af.freezing.af.fahrenheit == 32)
  }

  @Test("Setting the af namespace has no effect")
  func settingDoesNothing() {
    var value = Celsius(degrees: 100)
    value.af = Celsius(degrees: 1).af
    #expect(value.af.type.degrees == 100)
  }
}
