import Foundation

// How the factories make their requests: of a description and, for uploads, of a body.
extension Session {
  func perform(
    _ convertible: any URLRequestConvertible, runsUserCode: Bool, interceptor: (any RequestInterceptor)?,
    shouldAutomaticallyResume: Bool?
  ) -> DataRequest {
    let request = DataRequest(
      core: RequestCore(
        session: core, convertible: convertible, convertsByUserCode: runsUserCode, interceptor: interceptor,
        shouldAutomaticallyResume: shouldAutomaticallyResume))
    request.core.setUp(request, requestSetup)
    return request
  }

  func download(
    _ convertible: any URLRequestConvertible, runsUserCode: Bool, _ interceptor: (any RequestInterceptor)?,
    _ shouldAutomaticallyResume: Bool?, _ destination: DownloadRequest.Destination?,
    _ downloadable: DownloadRequest.Downloadable? = nil
  ) -> DownloadRequest {
    let plan = DownloadPlan(downloadable ?? .request(convertible), destination: destination)
    let request = DownloadRequest(
      core: RequestCore(
        session: core, convertible: convertible, convertsByUserCode: runsUserCode, download: plan,
        interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume))
    request.core.setUp(request, requestSetup)
    return request
  }

  func upload(
    _ form: MultipartFormData, _ threshold: UInt64, with convertible: any URLRequestConvertible,
    runsUserCode: Bool, _ interceptor: (any RequestInterceptor)?, _ shouldAutomaticallyResume: Bool?,
    _ fileManager: FileManager
  ) -> UploadRequest {
    upload(
      MultipartUploadable(form: form, threshold: threshold),
      with: MultipartRequest(base: convertible, contentType: form.contentType), runsUserCode: runsUserCode,
      interceptor, shouldAutomaticallyResume, fileManager)
  }

  package func upload(
    _ uploadable: any UploadableConvertible, to url: any URLConvertible, _ method: HTTPMethod,
    _ headers: HTTPHeaders?, _ interceptor: (any RequestInterceptor)?, _ shouldAutomaticallyResume: Bool?,
    _ fileManager: FileManager, _ modifier: RequestModifier?
  ) -> UploadRequest {
    let description = RequestDescription(url: url, method: method, headers: headers, modifier: modifier)
    return upload(
      uploadable, with: description, runsUserCode: description.runsUserCode, interceptor,
      shouldAutomaticallyResume, fileManager)
  }

  package func upload(
    _ uploadable: any UploadableConvertible, with convertible: any URLRequestConvertible,
    runsUserCode: Bool? = nil, _ interceptor: (any RequestInterceptor)?,
    _ shouldAutomaticallyResume: Bool?, _ fileManager: FileManager
  ) -> UploadRequest {
    let request = UploadRequest(
      core: RequestCore(
        session: core, convertible: convertible,
        convertsByUserCode: runsUserCode ?? !(convertible is URLRequest),
        body: UploadBody(convertible: uploadable, fileManager: fileManager), interceptor: interceptor,
        shouldAutomaticallyResume: shouldAutomaticallyResume))
    request.core.setUp(request, requestSetup)
    return request
  }

  func stream(
    _ convertible: any URLRequestConvertible, runsUserCode: Bool, _ cancelsOnStreamError: Bool,
    _ interceptor: (any RequestInterceptor)?, _ shouldAutomaticallyResume: Bool?
  ) -> DataStreamRequest {
    let flow = StreamFlow(executor: core.executor)
    let request = DataStreamRequest(
      core: RequestCore(
        session: core, convertible: convertible, convertsByUserCode: runsUserCode, stream: flow,
        interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume),
      flow: flow, automaticallyCancelOnStreamError: cancelsOnStreamError)
    request.core.setUp(request, requestSetup)
    return request
  }
}
