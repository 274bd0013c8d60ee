import AFCommand

await Command.main()
