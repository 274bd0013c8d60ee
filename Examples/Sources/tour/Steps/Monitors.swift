import Alamofire

let monitors = Step("What a monitor is told") { stage in
  let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "monitor"))
  monitor.requestDidCreateTask = { _, task in stage.say("task \(task.taskIdentifier) begins") }
  monitor.taskWillPerformHTTPRedirection = { _, task, response, request in
    stage.say("task \(task.taskIdentifier): \(response.statusCode), to \(request.url?.path ?? "")")
  }
  monitor.requestDidFinish = { request in stage.say(request.description) }

  let session = Session(eventMonitors: [monitor])
  _ = await session.request(stage.server.url("/redirect/1")).serializingData().response
  monitor.queue.sync {}
}
