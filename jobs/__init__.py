"""The queue: jobs, the services that move them, the worker that runs them and the admin that shows them."""
